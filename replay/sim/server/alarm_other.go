//go:build !linux

package server

func newAlarm() alarm { return newTimerAlarm() }

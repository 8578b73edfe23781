//go:build !linux

package simserver

func newAlarm() alarm { return newTimerAlarm() }

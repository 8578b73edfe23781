package main

import (
	"bytes"
	"image"
	"image/draw"
	"image/png"
	"os"
	"testing"
)

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func decoded(t *testing.T, data []byte) image.Image {
	t.Helper()
	picture, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return picture
}

// pixels returns the colours of a picture. The bytes of the file also depend on
// how it is compressed.
func pixels(t *testing.T, data []byte) []byte {
	t.Helper()
	picture := decoded(t, data)
	all := image.NewRGBA(picture.Bounds())
	draw.Draw(all, all.Bounds(), picture, picture.Bounds().Min, draw.Src)
	return all.Pix
}

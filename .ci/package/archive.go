package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// file is a file of an archive.
type file struct {
	path, name string
	mode       fs.FileMode
}

// archive packs files under a folder named after the archive: a zip for Windows, a
// tar.gz for others. Order, dates, owners and modes do not depend on the machine.
func archive(path string, p platform, files []file, date time.Time) error {
	extension := ".tar.gz"
	if p.system == "windows" {
		extension = ".zip"
	}
	out, err := os.Create(path + extension)
	if err != nil {
		return err
	}
	defer out.Close()
	date = date.UTC()
	var add func(f file, name string, size int64) (io.Writer, error)
	var closers []io.Closer
	if p.system == "windows" {
		z := zip.NewWriter(out)
		closers = []io.Closer{z, out}
		add = func(f file, name string, _ int64) (io.Writer, error) {
			header := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: date}
			header.SetMode(f.mode)
			return z.CreateHeader(header)
		}
	} else {
		compressed, err := gzip.NewWriterLevel(out, gzip.BestCompression)
		if err != nil {
			return err
		}
		t := tar.NewWriter(compressed)
		closers = []io.Closer{t, compressed, out}
		add = func(f file, name string, size int64) (io.Writer, error) {
			return t, t.WriteHeader(&tar.Header{Name: name, Mode: int64(f.mode), Size: size, ModTime: date, Format: tar.FormatUSTAR})
		}
	}
	for _, f := range files {
		data, err := os.ReadFile(f.path)
		if err != nil {
			return err
		}
		w, err := add(f, filepath.Base(path)+"/"+f.name, int64(len(data)))
		if err != nil {
			return err
		}
		if _, err := w.Write(data); err != nil {
			return err
		}
	}
	for _, c := range closers {
		err = errors.Join(err, c.Close())
	}
	return err
}

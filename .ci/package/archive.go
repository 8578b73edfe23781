package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// file is a file of an archive.
type file struct {
	path, name string
	executable bool
}

func (f file) mode() fs.FileMode {
	if f.executable {
		return 0o755
	}
	return 0o644
}

// archive packs files under a folder named after the archive: a zip for Windows, a
// tar.gz for others. Order, dates, owners and modes do not depend on the machine.
func archive(path string, p platform, files []file, date time.Time) error {
	extension, pack := ".tar.gz", tarball
	if p.system == "windows" {
		extension, pack = ".zip", zipped
	}
	out, err := os.Create(path + extension)
	if err != nil {
		return err
	}
	defer out.Close()
	if err := pack(out, filepath.Base(path), files, date.UTC()); err != nil {
		return err
	}
	return out.Close()
}

func tarball(w io.Writer, folder string, files []file, date time.Time) error {
	compressed, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	t := tar.NewWriter(compressed)
	for _, f := range files {
		data, err := os.ReadFile(f.path)
		if err != nil {
			return err
		}
		header := &tar.Header{Name: folder + "/" + f.name, Mode: int64(f.mode()), Size: int64(len(data)), ModTime: date, Format: tar.FormatUSTAR}
		if err := t.WriteHeader(header); err != nil {
			return err
		}
		if _, err := t.Write(data); err != nil {
			return err
		}
	}
	if err := t.Close(); err != nil {
		return err
	}
	return compressed.Close()
}

func zipped(w io.Writer, folder string, files []file, date time.Time) error {
	z := zip.NewWriter(w)
	for _, f := range files {
		data, err := os.ReadFile(f.path)
		if err != nil {
			return err
		}
		header := &zip.FileHeader{Name: folder + "/" + f.name, Method: zip.Deflate, Modified: date}
		header.SetMode(f.mode())
		part, err := z.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := part.Write(data); err != nil {
			return err
		}
	}
	return z.Close()
}

package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/goiwarp/iwarp/interop/powercut"
)

// makeFiles makes n files, each in one of the possible ways, and grows every third one. It reports
// a file when the file is open.
func makeFiles(n int, sabotage string) error {
	for i := range n {
		name, size := fmt.Sprintf("file-%d", i), int64(i%7+1)*pageLen
		if err := makeFile(i, name, size, sabotage); err != nil {
			return err
		}
		if i%3 > 0 {
			continue
		}
		if err := makeFile(i, name, 2*size, sabotage); err != nil {
			return err
		}
	}
	time.Sleep(time.Hour) // until the power is cut
	return nil
}

func makeFile(i int, name string, size int64, sabotage string) error {
	var err error
	if path := dataDir + "/" + name; sabotage == powercut.Honest {
		err = makeHonestly([]string{powercut.Mapped, powercut.Positioned}[i%2], path, size)
	} else {
		err = makeCarelessly(path, size, sabotage == powercut.NoNameSync)
	}
	if err == nil {
		fmt.Println(powercut.Created, name, size)
	}
	return err
}

func makeHonestly(backing, path string, size int64) error {
	f, err := openAs(backing, path, size)
	if err != nil {
		return err
	}
	return f.buffer.(interface{ Close() error }).Close()
}

func makeCarelessly(path string, size int64, sync bool) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	err = f.Truncate(size)
	if sync {
		err = errors.Join(err, f.Sync())
	}
	return errors.Join(err, f.Close())
}

// listFiles prints the existing files.
func listFiles() error {
	files, err := os.ReadDir(dataDir)
	if err != nil {
		return err
	}
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			continue // its name is there, and it is not
		}
		fmt.Println(powercut.There, f.Name(), info.Size())
	}
	return nil
}

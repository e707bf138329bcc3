package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// openFile opens a file that is to be sent. It refuses files that could wait for another program, such as pipes.
func openFile(name string) (*os.File, error) {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no file", name)
	}
	return os.Open(name)
}

// put sends a file to the server at the other end of c, and returns its length.
func put(c io.ReadWriter, f *os.File, dest string) (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	if len(dest)+8 > maxPath {
		return 0, errors.New("the name is too long")
	}
	path := make([]byte, (len(dest)+8)&^7) // the name and zeros, one at least
	copy(path, dest)
	const regular = 0o100000
	mode := regular | uint32(info.Mode().Perm())
	if err := ask(c, header{command: open, data: mode}, path, nil, 0); err != nil {
		return 0, err
	}
	// An empty file is complete by now. librdmacm's server cannot write zero octets.
	if n := info.Size(); n > 0 {
		size := binary.LittleEndian.AppendUint64(nil, uint64(n))
		if err := ask(c, header{command: write}, size, f, n); err != nil {
			return 0, err
		}
	}
	return info.Size(), ask(c, header{command: closes}, nil, nil, 0)
}

// ask sends a command, followed by n octets of a file, and waits for the answer.
func ask(c io.ReadWriter, h header, body []byte, file io.Reader, n int64) error {
	h.length = uint16(headerSize + len(body))
	if _, err := c.Write(append(h.append(nil), body...)); err != nil {
		return err
	}
	if n > 0 {
		// A server that accepts no more, for example because its disk is full, says so before it ends the connection.
		switch _, err := io.CopyN(c, file, n); {
		case err == io.EOF: //nolint:errorlint // io.CopyN does not wrap it
			return errors.New("the file has become shorter")
		case err != nil && !errors.Is(err, syscall.ECONNRESET):
			return err
		}
	}
	got, err := readHeader(c)
	switch {
	case err != nil:
		return unexpected(err)
	case got.command != h.command|answer || got.length != headerSize:
		return fmt.Errorf("command %d is answered by %d, of %d octets", h.command, got.command, got.length)
	case got.data != 0:
		return statusError(h.command, got.data)
	}
	return nil
}

package cli

import (
	"io"
	"os"

	"github.com/charmbracelet/x/term"
)

// Terminal returns the file of a stream if it is a terminal.
func Terminal(stream any) (*os.File, bool) {
	if c, ok := stream.(*counted); ok {
		stream = c.Writer
	}
	file, ok := stream.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" || !term.IsTerminal(file.Fd()) {
		return nil, false
	}
	return file, true
}

// IsTerminal reports whether w is a terminal.
func IsTerminal(w io.Writer) bool {
	_, ok := Terminal(w)
	return ok
}

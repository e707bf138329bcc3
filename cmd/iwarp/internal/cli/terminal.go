package cli

import (
	"io"
	"os"

	"github.com/charmbracelet/x/term"
)

// Terminal returns the file of a stream if people see what is written to it, or type what is read from it.
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

// IsTerminal tells whether people see what is written to w.
func IsTerminal(w io.Writer) bool {
	_, ok := Terminal(w)
	return ok
}

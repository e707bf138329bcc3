package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// A child is a process of the mesh, from the view of the program that has started it.
type child struct {
	number  int
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     io.ReadCloser
	replies *json.Decoder
}

// spawn starts a process. It is killed when ctx ends.
func spawn(ctx context.Context, number int) (*child, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &child{number: number, cmd: exec.CommandContext(ctx, exe, asProcess)}
	c.cmd.Stderr = os.Stderr
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if c.out, err = c.cmd.StdoutPipe(); err != nil {
		return nil, errors.Join(err, c.in.Close())
	}
	if err := c.cmd.Start(); err != nil { // Start has closed the pipes
		return nil, err
	}
	c.replies = json.NewDecoder(c.out)
	return c, nil
}

// do sends the process a command, and waits for the reply.
func (c *child) do(cmd *command) (reply, error) {
	var r reply
	err := json.NewEncoder(c.in).Encode(cmd)
	if err == nil {
		err = c.replies.Decode(&r)
	}
	if err == nil && r.Err != "" {
		err = errors.New(r.Err)
	}
	if err != nil {
		return r, fmt.Errorf("process %d, %s: %w", c.number, cmd.Do, err)
	}
	return r, nil
}

// leave ends the input of the process, and waits until it has ended by itself.
func (c *child) leave() error {
	if err := c.in.Close(); err != nil {
		return err
	}
	return c.cmd.Wait()
}

// kill ends the process at once, whatever it is doing.
func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

// Blockstore keeps blocks of 4 KiB in a file, which clients write and read by RDMA. It is the program of
// docs/tutorial.md.
//
//	blockstore serve ADDR FILE BLOCKS    serves FILE, which it makes or grows to BLOCKS blocks
//	blockstore write ADDR BLOCK          writes the standard input, of up to 4 KiB, to a block, and makes it durable
//	blockstore read ADDR BLOCK           prints a block
//
// There is no authentication: every host that reaches the server can read and write every block.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/commit"
	"github.com/goiwarp/iwarp/examples/internal/program"
	"github.com/goiwarp/iwarp/stag"
)

const blockSize = 4096

// serve gives clients access to the blocks of a file, until ctx ends.
func serve(ctx context.Context, rnic *iwarp.RNIC, addr, path string, blocks int, out io.Writer) (err error) {
	disk, err := commit.OpenFile(path, &commit.FileOptions{Size: int64(blocks) * blockSize})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, disk.Close()) }()
	pd, err := rnic.AllocPD()
	if err != nil {
		return err
	}
	rights := stag.LocalWrite | stag.RemoteWrite | stag.RemoteRead
	region, err := pd.RegisterBuffer(disk, rights, &iwarp.MROptions{Durable: disk})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, region.Close()) }()
	where, err := region.Advertise(0, blocks*blockSize).AppendBinary(nil)
	if err != nil {
		return err
	}

	listener, err := rnic.Listen(ctx, "tcp", addr, nil)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "listening at", listener.Addr())
	err = listener.Serve(ctx, func(request *iwarp.ConnRequest) {
		qp, err := request.Accept(ctx, &iwarp.QPConfig{PD: pd, PrivateData: where, Commit: &iwarp.CommitOptions{Negotiate: true}})
		if err == nil {
			fmt.Fprintln(out, "connected:", qp.RemoteAddr())
		}
	})
	if ctx.Err() == nil {
		return err
	}
	end, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return rnic.Shutdown(end)
}

// A store gives a client access to the server's blocks.
type store struct {
	qp     *iwarp.QP
	blocks iwarp.RemoteBuffer // of the server
	block  []byte             // of this process, registered as mr
	mr     *iwarp.MR
}

func dial(ctx context.Context, rnic *iwarp.RNIC, addr string, block []byte) (*store, error) {
	pd, err := rnic.AllocPD()
	if err != nil {
		return nil, err
	}
	s := &store{block: block}
	if s.mr, err = pd.RegisterMR(s.block, stag.LocalWrite, nil); err != nil {
		return nil, err
	}
	s.qp, err = rnic.Dial(ctx, "tcp", addr, &iwarp.QPConfig{PD: pd, Commit: &iwarp.CommitOptions{Negotiate: true}})
	if err != nil {
		return nil, err
	}
	return s, s.blocks.UnmarshalBinary(s.qp.PrivateData())
}

// write writes s.block to block n. The block is on the server's disk when write returns.
func (s *store) write(ctx context.Context, n int) error {
	at := s.blocks.Slice(n*blockSize, blockSize)
	_, err := s.qp.Do(ctx,
		iwarp.SendWR{Op: iwarp.OpRDMAWrite, Local: []iwarp.SGE{s.mr.Slice(0, blockSize)}, Remote: at},
		iwarp.SendWR{Op: iwarp.OpCommit, Regions: []iwarp.RemoteBuffer{at}})
	return err
}

// read reads block n into s.block.
func (s *store) read(ctx context.Context, n int) error {
	return s.qp.RDMARead(ctx, s.mr.Slice(0, blockSize), s.blocks.Slice(n*blockSize, blockSize))
}

// fill reads in into block, and fills the rest with zeros.
func fill(block []byte, in io.Reader) error {
	b, err := io.ReadAll(io.LimitReader(in, blockSize+1))
	if err == nil && len(b) > blockSize {
		err = fmt.Errorf("more than %d octets", blockSize)
	}
	copy(block, b)
	return err
}

// access performs one of the commands write and read. It reads the input of write before any time limit begins.
func access(ctx context.Context, rnic *iwarp.RNIC, command, addr string, n int, in io.Reader, out io.Writer) error {
	block := make([]byte, blockSize)
	if command == "write" {
		if err := fill(block, in); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	s, err := dial(ctx, rnic, addr, block)
	if err != nil {
		return err
	}
	if command == "write" {
		err = s.write(ctx, n)
	} else if err = s.read(ctx, n); err == nil {
		_, err = out.Write(block)
	}
	return errors.Join(err, rnic.Shutdown(ctx))
}

const usage = program.UsageError("usage: blockstore serve ADDR FILE BLOCKS, or blockstore write|read ADDR BLOCK")

func run(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	switch {
	case len(args) > 0 && program.AsksForHelp(args[0]):
		_, err := fmt.Fprintln(out, usage)
		return err
	case len(args) < 3:
		return usage
	}
	n, err := strconv.Atoi(args[len(args)-1])
	if err != nil || n < 0 || n >= 1<<19 || n == 0 && args[0] == "serve" {
		return program.UsageError("a server has 1 to 524287 blocks, which is less than 2 GiB, and the first one is 0")
	}
	rnic, err := iwarp.Open(nil)
	if err != nil {
		return err
	}
	defer func() { _ = rnic.Close() }()
	switch {
	case args[0] == "serve" && len(args) == 4:
		return serve(ctx, rnic, args[1], args[2], n, out)
	case args[0] != "write" && args[0] != "read" || len(args) != 3:
		return usage
	}
	return access(ctx, rnic, args[0], args[1], n, in, out)
}

func main() {
	program.Main("blockstore", func(ctx context.Context) error { return run(ctx, os.Args[1:], os.Stdin, os.Stdout) })
}

package main

import (
	"context"
	"fmt"

	"github.com/goiwarp/iwarp/examples/nvme/backend"
	"github.com/goiwarp/iwarp/examples/nvme/target"
	"github.com/goiwarp/iwarp/interop/nvmecut"
	"github.com/goiwarp/iwarp/interop/powercut"
)

// serveNVMe runs an NVMe target, with the data file as its only namespace.
func serveNVMe(sabotage string) error {
	b, err := backend.Open(fmt.Sprintf("file:%s,size=%d,bs=%d", dataFile, nvmecut.Size, nvmecut.BlockSize))
	if err != nil {
		return err
	}
	if sabotage == powercut.NoSync {
		b = unflushed{b}
	}
	if err := networkUp(); err != nil {
		return fmt.Errorf("network: %w", err)
	}
	t, err := target.New(nil)
	if err != nil {
		return err
	}
	if err := t.AddSubsystem(target.Subsystem{NQN: nvmecut.SubNQN}); err != nil {
		return err
	}
	if err := t.AddNamespace(nvmecut.SubNQN, target.Namespace{NSID: 1, Backend: b}); err != nil {
		return err
	}
	ctx := context.Background()
	l, err := t.Listen(ctx, "tcp", "0.0.0.0:"+nvmecut.Port)
	if err != nil {
		return err
	}
	fmt.Println(powercut.Sign, "serving")
	return t.Serve(ctx, l)
}

// An unflushed back end reports each Flush and each Write with FUA as durable, but does not flush anything.
type unflushed struct{ backend.Backend }

func (unflushed) Flush(context.Context) error { return nil }

func (u unflushed) WriteAt(ctx context.Context, p []byte, off int64, _ bool) error {
	return u.Backend.WriteAt(ctx, p, off, false)
}

package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/goiwarp/iwarp/examples/internal/program"
	"github.com/goiwarp/iwarp/examples/kvstore/kv"
)

const (
	keySuffix  = ".key"
	masterFile = "master" + keySuffix
)

// makeKeys writes the keys of tenants, and a master key if there is none.
func makeKeys(args []string, out io.Writer) error {
	if len(args) < 2 {
		return program.UsageError("usage: kvstore keys DIR TENANT [TENANT]")
	}
	path := filepath.Join(args[0], masterFile)
	for _, tenant := range args[1:] {
		if strings.EqualFold(filepath.Join(args[0], tenant+keySuffix), path) {
			return fmt.Errorf("the key of a tenant %q would replace %s", tenant, masterFile)
		}
	}
	if err := os.MkdirAll(args[0], 0o700); err != nil {
		return err
	}
	master, err := readKey(path)
	if errors.Is(err, fs.ErrNotExist) {
		master = make([]byte, kv.MasterLen)
		if _, err = rand.Read(master); err == nil {
			err = writeKey(path, master, out)
		}
	}
	if err != nil {
		return err
	}
	for _, tenant := range args[1:] {
		key, err := kv.TenantKey(master, tenant)
		if err != nil {
			return err
		}
		if err := writeKey(filepath.Join(args[0], tenant+keySuffix), key, out); err != nil {
			return err
		}
	}
	return nil
}

// writeKey writes a key to a file. It replaces an existing file and keeps its permissions. The file never contains a partial key.
func writeKey(path string, key []byte, out io.Writer) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // with mode 0600
	if err != nil {
		return err
	}
	err = errors.Join(fill(f, key, path), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	_, err = fmt.Fprintln(out, path)
	return err
}

// fill writes a key to f, gives f the permissions of the file at path, and makes it durable.
func fill(f *os.File, key []byte, path string) error {
	if info, err := os.Stat(path); err == nil {
		if err := f.Chmod(info.Mode().Perm()); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintf(f, "%x\n", key); err != nil {
		return err
	}
	return f.Sync()
}

func readKey(path string) ([]byte, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(b)))
	if err == nil && len(key) != kv.MasterLen { // another program, or a full disk, may have left it
		err = fmt.Errorf("it has %d octets, and a key %d", len(key), kv.MasterLen)
	}
	if err != nil {
		return nil, fmt.Errorf("%s has no key in it: %w", path, err)
	}
	return key, nil
}

// serve runs one replica until ctx ends. Its first line of output says where it listens, and the second
// one that it serves. Warnings go to diag, including the reason why it does not serve.
func serve(ctx context.Context, o *options, out, diag io.Writer) (err error) {
	if o.file == "" || len(o.args) > 0 {
		return program.UsageError("usage: kvstore serve -file FILE [flags]")
	}
	if o.half == 0 || o.rekey < 0 || uint64(o.buckets) > math.MaxUint32 {
		return program.UsageError("serve needs a -log-half of more than 0, -buckets of less than 4294967296, and a -rekey that is not negative")
	}
	master, err := readKey(o.master)
	if err != nil {
		return err
	}
	cfg := kv.Config{
		Network: "tcp", Addr: o.addr, Backup: o.backup, Path: o.file, LogHalf: o.half, Master: master,
		Logger: slog.New(slog.NewTextHandler(diag, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	tenants := strings.Split(o.tenants, ",")
	for _, name := range tenants {
		cfg.Tenants = append(cfg.Tenants, kv.Tenant{Name: name, Shape: kv.Shape{Buckets: uint32(o.buckets), Values: o.values}})
	}
	r, err := kv.Open(ctx, &cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	fmt.Fprintln(out, r.Addr())
	select {
	case <-r.Served():
		fmt.Fprintln(out, "serving")
	case <-r.Failed():
		return r.Err()
	case <-ctx.Done():
		return nil
	}
	return rotate(ctx, r, tenants, o.rekey)
}

// rotate replaces the keys of regions until ctx or the replica ends. The old keys stay valid for one
// more second, so that no client notices.
func rotate(ctx context.Context, r *kv.Replica, tenants []string, every time.Duration) error {
	var tick <-chan time.Time
	if every > 0 {
		t := time.NewTicker(every)
		defer t.Stop()
		tick = t.C
	}
	for {
		select {
		case <-tick:
		case <-r.Failed():
			return r.Err()
		case <-ctx.Done():
			return nil
		}
		for _, name := range tenants {
			if _, err := r.Rekey(ctx, name, time.Second); err != nil && ctx.Err() == nil {
				return err
			}
		}
	}
}

// ask performs one operation.
func ask(ctx context.Context, what string, o *options, out io.Writer) (err error) {
	if want := map[string]int{"get": 1, "put": 2, "delete": 1}[what]; len(o.args) != want {
		return program.UsageError(fmt.Sprintf("kvstore %s has %d arguments after the flags, not %d", what, want, len(o.args)))
	}
	if o.key == "" {
		o.key = o.tenant + keySuffix
	}
	key, err := readKey(o.key)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	c, err := kv.Dial(ctx, &kv.ClientConfig{Network: "tcp", Primary: o.primary, Backup: o.backup, Tenant: o.tenant, Key: key})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	name := []byte(o.args[0])
	switch what {
	case "put":
		return c.Put(ctx, name, []byte(o.args[1]))
	case "delete":
		return c.Delete(ctx, name)
	}
	value, err := c.Get(ctx, name)
	if err == nil {
		_, err = fmt.Fprintf(out, "%s\n", value)
	}
	return err
}

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cm"
	"github.com/goiwarp/iwarp/examples/nvme/capsule"
	"github.com/goiwarp/iwarp/examples/nvme/target"
)

const (
	keyLen   = 32 // octets of a key that nvme key makes
	leastKey = 16 // octets of a key that is taken
)

func keyFlags(*flag.FlagSet) action { return makeKey }

// makeKey writes a new key to a file that does not exist yet.
func makeKey(_ context.Context, _ *streams, args []string) error {
	key := make([]byte, keyLen)
	_, _ = rand.Read(key) // never fails
	f, err := os.OpenFile(args[0], os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if _, err = fmt.Fprintln(f, hex.EncodeToString(key)); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}

// A keyFile holds the contents of a file of keys.
type keyFile struct {
	keys   []cm.Key
	owners map[uint64]string // host NQN by the ID of a key, for keys that have one
}

// readKeys reads a file of keys: one per line, in hexadecimal digits, optionally followed by the NQN of the only host that may
// use it. Empty lines, and lines that begin with #, are comments.
func readKeys(path string) (*keyFile, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("-auth: %w", err)
	}
	f := &keyFile{owners: make(map[uint64]string)}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		if err := f.add(strings.Fields(line)); err != nil { // the error does not contain the key, which is secret
			return nil, fmt.Errorf("-auth: line %d of %s: %w", n, path, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("-auth: %s: %w", path, err)
	}
	if len(f.keys) == 0 {
		return nil, fmt.Errorf("-auth: %s has no key in it", path)
	}
	return f, nil
}

// add takes the fields of a line.
func (f *keyFile) add(fields []string) error {
	secret, err := hex.DecodeString(fields[0])
	if err != nil || len(secret) < leastKey {
		return fmt.Errorf("no key of %d octets or more, in hexadecimal digits", leastKey)
	}
	k := cm.Key{ID: keyID(secret), Secret: secret, Primary: len(f.keys) == 0}
	f.keys = append(f.keys, k)
	switch {
	case len(fields) == 1:
		return nil
	case len(fields) == 2 && strings.HasPrefix(fields[1], "nqn.") && capsule.CheckNQN(fields[1]) == nil:
		f.owners[k.ID] = fields[1]
		return nil
	}
	return errors.New("what is behind the key is not one NQN")
}

// authorize refuses a host that uses the key of another host.
func (f *keyFile) authorize(l *target.Login) error {
	if owner := f.owners[l.Peer.KeyID]; owner != "" && owner != l.HostNQN {
		return fmt.Errorf("the key is that of %s", owner)
	}
	return nil
}

// keyID returns an ID that does not depend on the position of the key in a file. It is not secret,
// and reveals nothing about a random key.
func keyID(secret []byte) uint64 {
	sum := sha256.Sum256(append([]byte("nvme key "), secret...))
	return binary.BigEndian.Uint64(sum[:])
}

// authenticator returns an Authenticator that uses the keys of a file: a target accepts each of them, and
// a host uses the first.
func authenticator(path string, log *slog.Logger) (iwarp.Authenticator, *keyFile, error) {
	f, err := readKeys(path)
	if err != nil {
		return nil, nil, err
	}
	ring, err := cm.NewRing(f.keys...)
	if err != nil {
		return nil, nil, fmt.Errorf("-auth: %s: %w", path, err)
	}
	auth, err := cm.New(&cm.Config{Ring: ring, Logger: log})
	if err != nil {
		return nil, nil, err
	}
	return auth, f, nil
}

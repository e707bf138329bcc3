package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cm"
)

const (
	keyLen   = 32 // octets of a key that nvme key makes
	leastKey = 16 // octets of a key that is taken
)

func keyFlags(*flag.FlagSet) action { return makeKey }

// makeKey writes a new key to a file that is not there yet.
func makeKey(_ context.Context, _ *streams, args []string) error {
	key := make([]byte, keyLen)
	_, _ = rand.Read(key) // it does not fail
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

// readKeys reads a file of keys: one a line, in hexadecimal digits. Empty lines, and those that
// begin with #, are comments.
func readKeys(path string) (keys []cm.Key, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("-auth: %w", err)
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		secret, err := hex.DecodeString(line)
		if err != nil || len(secret) < leastKey { // the line is secret: it is not in the error
			return nil, fmt.Errorf("-auth: line %d of %s is no key of %d octets or more, in hexadecimal digits", n, path, leastKey)
		}
		keys = append(keys, cm.Key{ID: keyID(secret), Secret: secret, Primary: len(keys) == 0})
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("-auth: %s: %w", path, err)
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("-auth: %s has no key in it", path)
	}
	return keys, nil
}

// keyID is the same wherever the key stands in a file. It is not secret, and tells nothing of a
// random key.
func keyID(secret []byte) uint64 {
	sum := sha256.Sum256(append([]byte("nvme key "), secret...))
	return binary.BigEndian.Uint64(sum[:])
}

// authenticator proves and verifies by the keys of a file: a target takes each of them, and a host
// uses the first.
func authenticator(path string, log *slog.Logger) (iwarp.Authenticator, error) {
	keys, err := readKeys(path)
	if err != nil {
		return nil, err
	}
	ring, err := cm.NewRing(keys...)
	if err != nil {
		return nil, fmt.Errorf("-auth: %s: %w", path, err)
	}
	auth, err := cm.New(&cm.Config{Ring: ring, Logger: log})
	if err != nil {
		return nil, err
	}
	return auth, nil
}

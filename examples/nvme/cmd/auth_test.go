package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
)

// TestAuth: the right key connects, even while keys are replaced. Another key does not.
func TestAuth(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"old", "new", "other"} {
		ok(t, "key", path(name))
	}
	_, err := nvme(t, nil, "key", path("old"))
	require.ErrorIs(t, err, os.ErrExist, "no key is overwritten")
	oldKey, err := os.ReadFile(path("old"))
	require.NoError(t, err)
	newKey, err := os.ReadFile(path("new"))
	require.NoError(t, err)
	both := append([]byte("# keys of hosts\n\n"), append(newKey, oldKey...)...)
	require.NoError(t, os.WriteFile(path("both"), both, 0o600))

	v := serve(t, "-backing", "mem:1MiB", "-auth", path("both"))
	for _, name := range []string{"old", "new", "both"} {
		require.Contains(t, ok(t, "list", v.addr, "-auth", path(name), "-queues", "2"), "1MiB")
	}
	_, err = nvme(t, nil, "list", v.addr, "-auth", path("other"))
	require.ErrorIs(t, err, iwarp.ErrAuth)
	_, err = nvme(t, nil, "discover", v.addr)
	require.Error(t, err, "without a key")

	plain := serve(t, "-backing", "mem:1MiB")
	_, err = nvme(t, nil, "list", plain.addr, "-auth", path("new"))
	require.ErrorIs(t, err, iwarp.ErrAuth, "a target without keys is not the right one")
}

// TestKeyOfOneHost: a key followed by an NQN is valid for that host only.
func TestKeyOfOneHost(t *testing.T) {
	const owner, other = "nqn.2026-11.org.example:owner", "nqn.2026-11.org.example:other"
	path := filepath.Join(t.TempDir(), "key")
	ok(t, "key", path)
	key, err := os.ReadFile(path)
	require.NoError(t, err)
	bound := path + ".bound"
	require.NoError(t, os.WriteFile(bound, []byte(strings.TrimSpace(string(key))+" "+owner+"\n"), 0o600))
	v := serve(t, "-backing", "mem:1MiB", "-auth", bound)
	const id = "3f1b4f2e-9a77-4d0b-8c1e-5a3f0f6f7b11"
	ok(t, "list", v.addr, "-auth", path, "-hostnqn", owner, "-hostid", id)
	_, err = nvme(t, nil, "list", v.addr, "-auth", path, "-hostnqn", other, "-hostid", id)
	require.ErrorContains(t, err, "not allowed")
	_, err = nvme(t, nil, "list", v.addr, "-auth", path)
	require.ErrorContains(t, err, "not allowed")
}

func TestKeyFilesThatAreWrong(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	for text, want := range map[string]string{
		"":                        "has no key in it",
		"# only a comment\n":      "has no key in it",
		"\n0011223344\n":          "line 2 of " + path + ": no key of 16 octets or more",
		"a secret that is text":   "line 1 of " + path + ": no key",
		"00112233445566778899aab": "line 1 of ",
		"00112233445566778899aabbccddeeff 00112233445566778899aabbccddee": "behind the key is not one NQN",
	} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := nvme(t, nil, "serve", "-backing", "mem:1MiB", "-auth", path)
		require.ErrorContains(t, err, want)
		if len(text) > 0 {
			require.NotContains(t, err.Error(), "secret", "the error has nothing of the key")
		}
	}
	_, err := nvme(t, nil, "discover", "127.0.0.1", "-auth", path+".not")
	require.ErrorIs(t, err, os.ErrNotExist)
}

// An authority makes certificates.
type authority struct {
	t    *testing.T
	dir  string
	key  ed25519.PrivateKey
	cert *x509.Certificate

	names []string // of the hosts that certificates are for, in addition to an address
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, dir: t.TempDir()}
	a.cert, a.key = a.make("ca", nil, nil)
	return a
}

// make writes a certificate, and its key, to files.
func (a *authority) make(name string, parent *x509.Certificate, by ed25519.PrivateKey) (*x509.Certificate, ed25519.PrivateKey) {
	pub, key, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(a.t, err)
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotAfter: time.Now().Add(time.Hour),
		IsCA: parent == nil, BasicConstraintsValid: true, DNSNames: a.names,
	}
	if parent == nil {
		parent, by = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, pub, by)
	require.NoError(a.t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(a.t, err)
	for suffix, b := range map[string]*pem.Block{".crt": {Type: "CERTIFICATE", Bytes: der}, ".key": {Type: "PRIVATE KEY", Bytes: private}} {
		require.NoError(a.t, os.WriteFile(a.path(name+suffix), pem.EncodeToMemory(b), 0o600))
	}
	cert, err := x509.ParseCertificate(der)
	require.NoError(a.t, err)
	return cert, key
}

func (a *authority) path(name string) string { return filepath.Join(a.dir, name) }

// flags returns the flags of one side with its certificate and the CA.
func (a *authority) flags(name string) []string {
	a.make(name, a.cert, a.key)
	return []string{"-tls-cert", a.path(name + ".crt"), "-tls-key", a.path(name + ".key"), "-tls-ca", a.path("ca.crt")}
}

func TestTLS(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	serverFlags := a.flags("target")
	open := serve(t, append([]string{"-backing", "mem:1MiB"}, serverFlags[:4]...)...)
	closed := serve(t, append([]string{"-backing", "mem:1MiB"}, serverFlags...)...)
	list := func(v *server, flags ...string) error {
		_, err := nvme(t, nil, append([]string{"list", v.addr}, flags...)...)
		return err
	}
	right, wrong := a.flags("host"), other.flags("host")
	require.NoError(t, list(open, "-tls-ca", a.path("ca.crt")))
	require.ErrorContains(t, list(open, "-tls-ca", other.path("ca.crt")), "certificate signed by unknown authority")
	require.Error(t, list(open), "without TLS")
	require.NoError(t, list(closed, right...))
	require.Error(t, list(closed, "-tls-ca", a.path("ca.crt")), "without a certificate")
	wrong[5] = a.path("ca.crt")
	require.Error(t, list(closed, wrong...), "with one of another CA")
}

// TestErrorsAreNoCommandsOfATerminal: the peer chooses the names in its certificate, whichever CA signs it, and the
// error that refuses it contains them.
func TestErrorsAreNoCommandsOfATerminal(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	a.names = []string{"other\x1b[2J", "a\nnvme: all is well"}
	v := serve(t, append([]string{"-backing", "mem:1MiB"}, a.flags("target")[:4]...)...)
	_, port, err := net.SplitHostPort(v.addr)
	require.NoError(t, err)
	var diag bytes.Buffer
	s := &streams{in: bytes.NewReader(nil), out: io.Discard, diag: &diag}
	require.Equal(t, 1, status(t.Context(), []string{"list", "localhost:" + port, "-tls-ca", other.path("ca.crt"), "-timeout", patience.String()}, s))
	require.Contains(t, diag.String(), "is valid for other\uFFFD[2J, a; nvme: all is well, not localhost")
	require.Equal(t, 1, strings.Count(diag.String(), "\n"), diag.String())

	diag.Reset()
	require.Equal(t, 2, status(t.Context(), []string{"list"}, s))
	require.Equal(t, "nvme: list: ADDR is missing\n", diag.String())
}

package regionkey

import (
	"crypto/hkdf"
	"crypto/sha256"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/octettest"
)

var (
	unhex  = octettest.Hex
	octets = octettest.Counting
)

// epochStart is the time at which all tests begin.
var epochStart = time.Unix(1700000000, 0)

func keyOf(t testing.TB, s string) Key {
	t.Helper()
	return Key(unhex(s))
}

// exporterOf exports like package cm on a connection with that secret.
func exporterOf(secret []byte) Exporter {
	return func(label string, context []byte, n int) ([]byte, error) {
		sum := sha256.Sum256(context)
		b := append([]byte("iwarp cm export v1"), 0, uint8(len(label)))
		b = append(append(b, label...), sum[:]...)
		return hkdf.Expand(sha256.New, secret, string(b), n)
	}
}

// A scene is the setting of the vectors: the initiator is the client, the responder the server.
type scene struct {
	region   uint64
	ring     *Ring
	peer     [32]byte
	instance [16]byte
	export   Exporter
	secret   Key // of the connection
}

func newScene(t testing.TB) *scene {
	t.Helper()
	s := &scene{
		region:   0x1122334455667788,
		peer:     keyOf(t, "b67686522b419730cd5abeb592271353c75f1eca979a0b2215a61e9d66ac0fe9"),
		instance: [16]byte(octets(0xc0, 16)),
		export:   exporterOf(unhex("836d1ffee1437375bc8d05b943a8c80bcbb840575c3e92f40571a5ac40678413")),
	}
	var err error
	s.secret, err = BindingSecret(s.export)
	require.NoError(t, err)
	s.ring, err = NewRing(s.region, nil)
	require.NoError(t, err)
	for _, secret := range [][]byte{nil, octets(0x40, 32)} {
		_, err = s.ring.Rekey(epochStart, secret, 0)
		require.NoError(t, err)
	}
	return s
}

// key returns the key of the client in the current epoch.
func (s *scene) key(t testing.TB, op OpType) Key {
	t.Helper()
	k, err := s.ring.Derive(epochStart, s.ring.Current(), s.peer, s.instance, op)
	require.NoError(t, err)
	return k
}

func (s *scene) binding(dir, suite uint8) *Binding {
	return &Binding{Secret: s.secret, Owner: Responder, Dir: dir, Suite: suite}
}

func (s *scene) sealer(t testing.TB, op OpType, dir, suite uint8) *Sealer {
	t.Helper()
	k := s.key(t, op)
	x, err := Traffic(&k, s.binding(dir, suite))
	require.NoError(t, err)
	return x
}

func (s *scene) control(t testing.TB, dir uint8) *Control {
	t.Helper()
	c, err := NewControl(s.export, dir)
	require.NoError(t, err)
	return c
}

// readAAD returns the AAD of the read in the vectors.
func (s *scene) readAAD() *AAD {
	return &AAD{
		Op: Read, Dir: Responder, Suite: SuiteAES128, Region: s.region, Epoch: s.ring.Current(),
		Length: 16, Offset: 4096, OpID: 5<<48 | 9,
	}
}

package regionkey

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// inputs are all inputs of a traffic key.
type inputs struct {
	secret     []byte
	region     uint64
	epoch      Epoch
	peer       [32]byte
	instance   [16]byte
	op         OpType
	connection Key
	owner, dir uint8
	suite      uint8
}

func (in inputs) keys(t *testing.T) (client Key, traffic []byte) {
	t.Helper()
	r := &Ring{region: in.region, current: epochKey{in.epoch, extract(in.secret)}}
	client, err := r.Derive(epochStart, in.epoch, in.peer, in.instance, in.op)
	require.NoError(t, err)
	b := Binding{in.connection, in.owner, in.dir, in.suite}
	traffic, err = b.trafficKey(&client)
	require.NoError(t, err)
	return client, traffic
}

func someInputs() inputs {
	return inputs{
		secret: octets(1, 32), region: 1, epoch: 1, op: Read, owner: Initiator, dir: Initiator, suite: SuiteAES256,
	}
}

func TestKEY_2_EachInputChangesTheKey(t *testing.T) {
	client, traffic := someInputs().keys(t)
	seen := map[string]string{string(traffic): "as it was"}
	for _, c := range []struct {
		name       string
		connection bool // it changes only the traffic key
		change     func(*inputs)
	}{
		{"secret", false, func(in *inputs) { in.secret = octets(2, 32) }},
		{"region", false, func(in *inputs) { in.region = 1 << 56 }},
		{"epoch", false, func(in *inputs) { in.epoch = 2 }},
		{"peer", false, func(in *inputs) { in.peer[31] = 1 }},
		{"peer", false, func(in *inputs) { in.peer[0] = 1 }},
		{"instance", false, func(in *inputs) { in.instance[0] = 1 }},
		{"instance", false, func(in *inputs) { in.instance[15] = 1 }},
		{"write", false, func(in *inputs) { in.op = Write }},
		{"manage", false, func(in *inputs) { in.op = Manage }},
		{"connection", true, func(in *inputs) { in.connection[31] = 1 }},
		{"owner", true, func(in *inputs) { in.owner = Responder }},
		{"direction", true, func(in *inputs) { in.dir = Responder }},
		{"suite", true, func(in *inputs) { in.suite = SuiteAES128 }},
	} {
		in := someInputs()
		c.change(&in)
		k, other := in.keys(t)
		require.Equal(t, c.connection, k == client, c.name)
		require.NotContains(t, seen, string(other), c.name)
		seen[string(other)] = c.name
		require.NotEqual(t, traffic[:16], other[:16], c.name)
	}
}

func TestKEY_3_SecretsOfRegions(t *testing.T) {
	for n := range 100 {
		_, err := NewRing(1, make([]byte, n))
		if n >= 16 && n <= 64 {
			require.NoError(t, err, n)
			continue
		}
		require.ErrorContains(t, err, "where 16 to 64 are possible", n)
	}
	a, err := NewRing(1, nil)
	require.NoError(t, err)
	b, err := NewRing(1, nil)
	require.NoError(t, err)
	require.NotEqual(t, a.current.prk, b.current.prk)
	empty, err := NewRing(1, octets(0, 16))
	require.NoError(t, err)
	_, err = empty.Rekey(epochStart, []byte{}, 0)
	require.Error(t, err)
	require.EqualValues(t, 1, empty.Current())

	secret := octets(3, 32)
	c, err := NewRing(1, secret)
	require.NoError(t, err)
	require.Equal(t, octets(3, 32), secret, "it is the caller's")
	clear(secret)
	require.Equal(t, extract(octets(3, 32)), c.current.prk)
}

// TestKEY_5_KeysAreOfAnIdentity: Derive takes the identity and the instance, so the key of a client can
// depend on nothing else.
func TestKEY_5_KeysAreOfAnIdentity(t *testing.T) {
	s := newScene(t)
	first := s.key(t, Read)
	again := newScene(t)
	require.Equal(t, first, again.key(t, Read))
	again.peer[0]++
	require.NotEqual(t, first, again.key(t, Read))
	_, err := s.ring.Derive(epochStart, s.ring.Current(), s.peer, s.instance, 0)
	require.ErrorContains(t, err, "operation 0")
	_, err = s.ring.Derive(epochStart, s.ring.Current(), s.peer, s.instance, 4)
	require.ErrorContains(t, err, "operation 4")
}

func TestKEY_6_NoKeysWithoutAnAuthenticatedConnection(t *testing.T) {
	broken, short := errors.New("broken"), bytes.Repeat([]byte{1}, 31)
	for _, x := range []Exporter{
		nil,
		func(string, []byte, int) ([]byte, error) { return nil, broken },
		func(string, []byte, int) ([]byte, error) { return short, nil },
	} {
		_, err := BindingSecret(x)
		require.ErrorIs(t, err, ErrNoSecret)
		_, err = NewControl(x, Initiator)
		require.ErrorIs(t, err, ErrNoSecret)
	}
	require.Equal(t, make([]byte, 31), short, "it is overwritten")
	_, err := BindingSecret(func(string, []byte, int) ([]byte, error) { return nil, broken })
	require.ErrorIs(t, err, broken)

	s := newScene(t)
	k := s.key(t, Read)
	for _, c := range []struct {
		b    Binding
		want string
	}{
		{Binding{Owner: 1, Dir: 1, Suite: 0}, "no keys for suite 0"},
		{Binding{Owner: 1, Dir: 1, Suite: 3}, "no keys for suite 3"},
		{Binding{Owner: 0, Dir: 1, Suite: 1}, "owner 0"},
		{Binding{Owner: 3, Dir: 1, Suite: 1}, "owner 3"},
		{Binding{Owner: 1, Dir: 0, Suite: 1}, "direction 0"},
		{Binding{Owner: 1, Dir: 3, Suite: 1}, "direction 3"},
	} {
		_, err := Traffic(&k, &c.b)
		require.ErrorContains(t, err, c.want)
	}
	_, err = NewControl(s.export, 0)
	require.ErrorContains(t, err, "direction 0")
}

// TestKEY_10_AnotherConnectionHasOtherKeys: everything that a process held before is there again, but
// the secret of the connection is new.
func TestKEY_10_AnotherConnectionHasOtherKeys(t *testing.T) {
	s := newScene(t)
	before := s.sealer(t, Read, Responder, SuiteAES128)
	control := s.control(t, Responder)
	s.export = exporterOf(octets(9, 32))
	var err error
	s.secret, err = BindingSecret(s.export)
	require.NoError(t, err)
	blob := before.Seal(nil, []byte("data"), 0, nil)
	_, err = s.sealer(t, Read, Responder, SuiteAES128).OpenInPlace(blob, 0, nil)
	require.ErrorIs(t, err, ErrOpen)
	message := control.Seal(nil, nil, 0, nil)
	_, err = s.control(t, Responder).OpenInPlace(message, 0, nil)
	require.ErrorIs(t, err, ErrOpen)
}

// TestKEY_1_ControlKeysDifferByDirection: a message is not valid for its sender.
func TestKEY_1_ControlKeysDifferByDirection(t *testing.T) {
	s := newScene(t)
	message := s.control(t, Initiator).Seal(nil, nil, 0, nil)
	_, err := s.control(t, Responder).OpenInPlace(message, 0, nil)
	require.ErrorIs(t, err, ErrOpen)
}

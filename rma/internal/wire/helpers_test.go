package wire

import (
	"crypto/hkdf"
	"crypto/sha256"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/octettest"
	"github.com/goiwarp/iwarp/regionkey"
	"github.com/goiwarp/iwarp/rma/internal/op"
)

var (
	unhex  = octettest.Hex
	octets = octettest.Counting
)

const vectorRegion = 0x1122334455667788

// vectorKeys are the keys of the vectors: the initiator is the client, the responder the server.
type vectorKeys struct {
	client, server      *regionkey.Control // what they send
	read, write, manage regionkey.Key
	reads, writes       *regionkey.Sealer // what the client proves
	rekeys              *regionkey.Sealer
}

func newVectorKeys(t testing.TB) *vectorKeys {
	t.Helper()
	secret := unhex("836d1ffee1437375bc8d05b943a8c80bcbb840575c3e92f40571a5ac40678413")
	x := regionkey.Exporter(func(label string, context []byte, n int) ([]byte, error) {
		sum := sha256.Sum256(context)
		b := append([]byte("iwarp cm export v1"), 0, uint8(len(label)))
		return hkdf.Expand(sha256.New, secret, string(append(append(b, label...), sum[:]...)), n)
	})
	v := &vectorKeys{
		read:   regionkey.Key(unhex("e5c9d575c846ed4d3d60afa9902b540700afd9d75862c1546720733ccc7b9d4b")),
		write:  regionkey.Key(unhex("0d08ecd42d2d9ca9e3854b7772d0b1397fadd401ef63552d9d4a5904f4282b6a")),
		manage: regionkey.Key(unhex("5165f2299fe3dfbd4da8fd8a4e2a7336013ae586f0b855cdf31806bf7167729c")),
	}
	binding, err := regionkey.BindingSecret(x)
	require.NoError(t, err)
	for dir, c := range map[uint8]**regionkey.Control{regionkey.Initiator: &v.client, regionkey.Responder: &v.server} {
		*c, err = regionkey.NewControl(x, dir)
		require.NoError(t, err)
	}
	b := regionkey.Binding{Secret: binding, Owner: regionkey.Responder, Dir: regionkey.Initiator, Suite: regionkey.SuiteAES128}
	for k, s := range map[*regionkey.Key]**regionkey.Sealer{&v.read: &v.reads, &v.write: &v.writes, &v.manage: &v.rekeys} {
		*s, err = regionkey.Traffic(k, &b)
		require.NoError(t, err)
	}
	return v
}

// A parser is a pointer to the body of a message.
type parser interface{ Parse([]byte) error }

// sealedParser is one whose fields depend on the suite.
type sealedParser interface {
	Parse(msg []byte, suite uint8) error
}

// parse reads a message into body, in suite 1.
func parse(body any, msg []byte) error { return parseIn(body, msg, regionkey.SuiteAES128) }

func parseIn(body any, msg []byte, suite uint8) error {
	if p, ok := body.(parser); ok {
		return p.Parse(msg)
	}
	return body.(sealedParser).Parse(msg, suite)
}

// A sample is one message of each type.
type sample struct {
	name   string
	header Header
	body   any // pointer
	wire   string
	server bool // sends it
	append func(dst []byte, h Header, c *regionkey.Control, k *vectorKeys) []byte
	inner  func(k *vectorKeys) *regionkey.Sealer
}

// build makes the message, under the keys, or in suite 0.
func (s *sample) build(k *vectorKeys, suite uint8) []byte {
	return s.append(nil, s.header, s.control(k, suite), k)
}

func (s *sample) control(k *vectorKeys, suite uint8) *regionkey.Control {
	switch {
	case suite == Suite0:
		return nil
	case s.server:
		return k.server
	default:
		return k.client
	}
}

// plain adapts the Append of a body without an inner tag to the signature of a sample.
func plain(f func([]byte, Header, *regionkey.Control) []byte) func([]byte, Header, *regionkey.Control, *vectorKeys) []byte {
	return func(dst []byte, h Header, c *regionkey.Control, _ *vectorKeys) []byte { return f(dst, h, c) }
}

// samples are the messages of the vectors, and of the other types. Samples without octets here are not
// among the vectors.
func samples(t testing.TB) []*sample {
	v := newVectorKeys(t)
	hello := &Hello{
		Offered: 0x0006, Chosen: 1, MaxOp: 4096, Depth: 64, PullTimeout: 500 * time.Millisecond,
		Guard: 100 * time.Millisecond, Linger: 250 * time.Millisecond, Instance: [16]byte(octets(0xc0, 16)),
	}
	openReq := &OpenReq{Region: vectorRegion, Instance: [16]byte(octets(0xc0, 16)), Ops: OpRead | OpWrite}
	openRep := &OpenRep{Region: vectorRegion, Epoch: 3, Size: 1 << 20, Ops: OpRead | OpWrite, Keys: [3]regionkey.Key{v.read, v.write}}
	readReq := &ReadReq{Region: vectorRegion, Epoch: 3, SinkSTag: 0xabcdef01, Offset: 4096, Length: 16, TTL: time.Second}
	readDone := &ReadDone{DataCtr: 0, Length: 16, Epoch: 3}
	writeReq := &WriteReq{Region: vectorRegion, Epoch: 3, Length: 16, Offset: 8192}
	pull := &Pull{Salt: [16]byte(octets(0xd0, 16)), SinkSTag: 0x12345601, Length: 16, Timeout: 500 * time.Millisecond}
	data := &Data{DataCtr: 0, Length: 16}
	writeDone := &WriteDone{Salt: [16]byte(octets(0xd0, 16)), Length: 16, Epoch: 3}
	status := &Status{Code: op.RemoteAuth, Reason: op.StaleEpoch, Region: vectorRegion, Epoch: 4}
	rekeyReq := &RekeyReq{Region: vectorRegion, Epoch: 3, Grace: 1500 * time.Millisecond, Next: 4, Secret: regionkey.Key(octets(0x60, 32))}
	rekeyDone := &RekeyDone{Region: vectorRegion, Epoch: 4}
	read, write, rekey := op.NewID(5, 9), op.NewID(6, 10), op.NewID(7, 11)
	return []*sample{
		{name: "HELLO", body: hello, append: plain(hello.Append)},
		{name: "OPEN_REQ", header: Header{Ctr: 1, Op: 1}, body: openReq, append: plain(openReq.Append)},
		{name: "OPEN_REP", header: Header{Ctr: 2, Op: 1}, body: openRep, append: plain(openRep.Append), wire: vectorOpenRep, server: true},
		{
			name: "READ_REQ", header: Header{Ctr: 2, Op: read}, body: readReq, wire: vectorReadReq,
			append: func(dst []byte, h Header, c *regionkey.Control, k *vectorKeys) []byte {
				return readReq.Append(dst, h, c, k.reads)
			},
			inner: func(k *vectorKeys) *regionkey.Sealer { return k.reads },
		},
		{name: "READ_DONE", header: Header{Ctr: 3, Op: read}, body: readDone, append: plain(readDone.Append), wire: vectorReadDone, server: true},
		{
			name: "WRITE_REQ", header: Header{Class: op.Bulk, Ctr: 3, Op: write}, body: writeReq, wire: vectorWriteReq,
			append: func(dst []byte, h Header, c *regionkey.Control, k *vectorKeys) []byte {
				return writeReq.Append(dst, h, c, k.writes)
			},
			inner: func(k *vectorKeys) *regionkey.Sealer { return k.writes },
		},
		{name: "PULL", header: Header{Class: op.Bulk, Ctr: 4, Op: write}, body: pull, append: plain(pull.Append), wire: vectorPull, server: true},
		{name: "DATA", header: Header{Class: op.Bulk, Ctr: 4, Op: write}, body: data, append: plain(data.Append), wire: vectorData},
		{name: "WRITE_DONE", header: Header{Class: op.Bulk, Ctr: 5, Op: write}, body: writeDone, append: plain(writeDone.Append), wire: vectorWriteDone, server: true},
		{name: "STATUS", header: Header{Ctr: 6, Op: read}, body: status, append: plain(status.Append), wire: vectorStatus, server: true},
		{
			name: "REKEY_REQ", header: Header{Ctr: 7, Op: rekey}, body: rekeyReq,
			append: func(dst []byte, h Header, c *regionkey.Control, k *vectorKeys) []byte {
				return rekeyReq.Append(dst, h, c, k.rekeys)
			},
			inner: func(k *vectorKeys) *regionkey.Sealer { return k.rekeys },
		},
		{name: "REKEY_DONE", header: Header{Ctr: 8, Op: rekey}, body: rekeyDone, append: plain(rekeyDone.Append), server: true},
	}
}

// sampleOf returns the sample of that name.
func sampleOf(t testing.TB, name string) *sample {
	t.Helper()
	for _, s := range samples(t) {
		if s.name == name {
			return s
		}
	}
	require.Fail(t, name)
	return nil
}

// fresh returns an empty body of the same type.
func fresh(t Type) any {
	switch t {
	case TypeHello:
		return new(Hello)
	case TypeOpenReq:
		return new(OpenReq)
	case TypeOpenRep:
		return new(OpenRep)
	case TypeReadReq:
		return new(ReadReq)
	case TypeReadDone:
		return new(ReadDone)
	case TypeWriteReq:
		return new(WriteReq)
	case TypePull:
		return new(Pull)
	case TypeData:
		return new(Data)
	case TypeWriteDone:
		return new(WriteDone)
	case TypeStatus:
		return new(Status)
	case TypeRekeyReq:
		return new(RekeyReq)
	default:
		return new(RekeyDone)
	}
}

const (
	vectorOpenRep = `0103000000a800000000000000000002000000000000000111223344556677880000000300000000000000000010000003000000000000008773b085ee947af5
	613b83da0a18faf0b67740f9eeec608f2711ca875402005dfd3e511571bf7391c0f70b7f76bf05a03c8e17636095827afae2680f4ba14c49379b081ae6efa201
	3a98783b4a651c34754ba3897096996ff7824febc9ad3f14ce50a1b7d53cf5549ec835a24e5d05a6`
	vectorReadReq = `010400000060000000000000000000020005000000000009112233445566778800000003abcdef010000000000001000000000000000000000000010000f4240
	b9b41eec6bbfdcbeefe6f1672a9c7824312874c23cfe9f2d818e55fa6c9ce1f9`
	vectorReadDone = `01050000003800000000000000000003000500000000000900000000000000000000001000000003edd950605e30a154c07361df5f4fcd15`
	vectorWriteReq = `01060100006000000000000000000003000600000000000a11223344556677880000000300000010000000000000200000000000000000000000000000000000
	eeabc4eb3b3467645211d1be2142884172f127b73c2acf134d9f59e8c068eb6e`
	vectorPull = `01070100005000000000000000000004000600000000000ad0d1d2d3d4d5d6d7d8d9dadbdcdddedf123456010000001000000000000000000007a12000000000
	c81e6358c8df653c011971d8afb8f63a`
	vectorData      = `01080100003800000000000000000004000600000000000a00000000000000000000001000000000ec97d18acfb2981176c07aec31e7bd1c`
	vectorWriteDone = `01090100004000000000000000000005000600000000000ad0d1d2d3d4d5d6d7d8d9dadbdcdddedf0000001000000003166f648c0e5f134790f4c825abb757f3`
	vectorStatus    = `010a0000004000000000000000000006000500000000000900010001000000001122334455667788000000040000000065b1c5c70f25a90cfc1861b7a2784efb`
)

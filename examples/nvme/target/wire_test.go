package target

import (
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
	"github.com/goiwarp/iwarp/stag"
)

// A wire is a queue of a host that writes its segments itself, without CRCs.
type wire struct {
	t    *testing.T
	conn net.Conn
	msn  uint32
}

// The RDMAP opcodes in use, with the version.
const (
	readRequest  = 0x41
	readResponse = 0x42
	sendOnly     = 0x43
	terminate    = 0x47
)

// Lengths of the headers.
const (
	taggedSize   = 14
	untaggedSize = 18
)

// wire connects I/O queue 1 of a session, up to the response to Connect.
func (w *world) wire(t *testing.T, s *session) *wire {
	c := &wire{t: t, conn: w.raw()}
	w.reply(c.conn, linux(1, 32))
	data := make([]byte, capsule.ConnectDataSize)
	d := capsule.ConnectData{HostID: hostID, CNTLID: s.cntlid, SubNQN: storage, HostNQN: hostNQN}
	d.Put(data)
	m := capsule.Connect{QID: 1, SQSize: 31}
	c.send(m.SQE(0, capsule.InCapsuleSGL(0, capsule.ConnectDataSize)), data...)
	c.response()
	return c
}

// segment sends a DDP segment in an FPDU.
func (c *wire) segment(b []byte) {
	f := binary.BigEndian.AppendUint16(nil, uint16(len(b)))
	f = append(f, b...)
	for len(f)%4 != 0 {
		f = append(f, 0)
	}
	_, err := c.conn.Write(append(f, 0, 0, 0, 0))
	require.NoError(c.t, err)
}

// send sends a command, whose CID is the number of the message.
func (c *wire) send(sqe capsule.SQE, behind ...byte) {
	c.msn++
	sqe.CID = uint16(c.msn)
	b := binary.BigEndian.AppendUint32([]byte{0x41, sendOnly, 0, 0, 0, 0, 0, 0, 0, 0}, c.msn)
	b = append(b, 0, 0, 0, 0)
	c.segment(append(append(b, sqe.Append(nil)...), behind...))
}

// placed sends a tagged segment, usually a Read Response.
func (c *wire) placed(t stag.STag, to uint64, last bool, p []byte) {
	b := []byte{0x81, readResponse}
	if last {
		b[0] |= 0x40
	}
	b = binary.BigEndian.AppendUint32(b, uint32(t))
	b = binary.BigEndian.AppendUint64(b, to)
	c.segment(append(b, p...))
}

// receive takes a segment of the target. An error means that the connection has ended.
func (c *wire) receive() ([]byte, error) {
	require.NoError(c.t, c.conn.SetReadDeadline(time.Now().Add(20*time.Second)))
	head := make([]byte, 2)
	if _, err := io.ReadFull(c.conn, head); err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint16(head))
	b := make([]byte, (2+n+3)/4*4+4-2)
	_, err := io.ReadFull(c.conn, b)
	return b[:n], err
}

// response takes a response that reports success.
func (c *wire) response() {
	b, err := c.receive()
	require.NoError(c.t, err)
	require.Equal(c.t, byte(sendOnly), b[1]&0x4f)
	cqe, err := capsule.ParseCQE(b[untaggedSize:])
	require.NoError(c.t, err)
	require.Equal(c.t, capsule.Success, cqe.Status)
}

// An asked is the place where the target wants the octets of an RDMA Read.
type asked struct {
	sink stag.STag
	to   uint64
	size int
}

// asks takes a Read Request.
func (c *wire) asks() asked {
	b, err := c.receive()
	require.NoError(c.t, err)
	require.Equal(c.t, byte(readRequest), b[1])
	b = b[untaggedSize:]
	return asked{stag.STag(binary.BigEndian.Uint32(b)), binary.BigEndian.Uint64(b[4:]), int(binary.BigEndian.Uint32(b[12:]))}
}

// ends checks that the target ends the connection, with at most a Terminate and no response.
func (c *wire) ends(why string) {
	for {
		b, err := c.receive()
		if err != nil {
			require.NotErrorIs(c.t, err, errDeadline, why)
			return
		}
		require.Equal(c.t, byte(terminate), b[1], why)
	}
}

package target

import (
	"context"
	"net"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/examples/nvme/capsule"
	"github.com/goiwarp/iwarp/stag"
)

// A talker repeats one conversation, on connections that may end at any time. It uses the same memory for all of them.
type talker struct {
	*session
	mem     []byte // Connect data, data to write, and data read
	mr      *iwarp.MR
	conn    net.Conn
	line    *line
	over    bool // the conversation was completed
	refused bool // some command was refused
}

// Offsets in mem.
const (
	talkWrite = capsule.ConnectDataSize
	talkRead  = talkWrite + small
	talkSize  = talkRead + capsule.PageSize
)

func newTalker(s *session) *talker {
	tk := &talker{session: s, mem: make([]byte, talkSize)}
	copy(tk.mem[talkWrite:], pattern(small, 1))
	var err error
	tk.mr, err = s.pd.RegisterMR(tk.mem, stag.LocalWrite|stag.RemoteWrite|stag.RemoteRead, nil)
	require.NoError(s.t, err)
	return tk
}

// keyed describes memory to the target.
func (tk *talker) keyed(from, n int) capsule.SGL {
	rb := tk.mr.Advertise(from, n)
	return capsule.KeyedSGL(uint32(rb.STag), rb.TO, rb.Len, false)
}

// talk holds the conversation of an admin queue, or of an I/O queue, on a connection. It reports whether it was
// completed.
func (tk *talker) talk(qid uint16, c net.Conn) (over bool) {
	tk.conn = c
	if qid == 0 {
		return tk.admin()
	}
	return tk.io(qid)
}

// call connects a queue, and sends Connect.
func (tk *talker) call(qid uint16, entries int, cntlid uint16) bool {
	l := tk.session.line(qid, entries)
	l.cut = true
	tk.line = l
	var err error
	if l.qp, err = tk.rnic.Client(context.Background(), tk.conn, l.config()); err != nil {
		return false
	}
	d := capsule.ConnectData{HostID: hostID, CNTLID: cntlid, SubNQN: storage, HostNQN: hostNQN}
	d.Put(tk.mem)
	m := capsule.Connect{QID: qid, SQSize: uint16(entries - 1)}
	return tk.say(m.SQE(0, tk.keyed(0, capsule.ConnectDataSize)))
}

// say sends a command, and waits for its response. It returns false if the connection has ended.
func (tk *talker) say(sqe capsule.SQE, behind ...byte) bool {
	sqe.CID = 1
	wr := iwarp.SendWR{Op: iwarp.OpSend, Flags: iwarp.Unsignaled, Inline: append(sqe.Append(nil), behind...)}
	if tk.line.qp.PostSend(wr) != nil {
		return false
	}
	a, err := tk.line.next()
	tk.refused = tk.refused || err == nil && !a.Status.OK()
	return err == nil
}

func (tk *talker) admin() bool {
	return tk.call(0, 4, capsule.AnyController) &&
		tk.say(capsule.GetProperty(capsule.PropCAP).SQE(0)) &&
		tk.say(capsule.SetProperty(capsule.PropCC, 0x00460001).SQE(0)) &&
		tk.say(capsule.Identify{CNS: capsule.CNSController}.SQE(0, tk.keyed(talkRead, capsule.PageSize))) &&
		tk.say(capsule.SetProperty(capsule.PropCC, 0x00464001).SQE(0)) &&
		tk.line.qp.Close() == nil
}

func (tk *talker) io(qid uint16) bool {
	p := tk.mem[talkWrite:talkRead]
	return tk.call(qid, 4, tk.cntlid) &&
		tk.say(rw(capsule.OpWrite, 2, 1, capsule.InCapsuleSGL(0, small)), p...) &&
		tk.say(rw(capsule.OpWrite, 1, 1, tk.keyed(talkWrite, small))) &&
		tk.say(rw(capsule.OpRead, 1, 1, tk.keyed(talkRead, small))) &&
		tk.say(capsule.FlushSQE(0, 1)) &&
		tk.line.qp.Close() == nil
}

// hangUp ends the connection, and frees the host's resources.
func (tk *talker) hangUp() {
	l := tk.line
	if l.qp != nil {
		_ = l.qp.Abort()
	}
	require.NoError(tk.t, l.cq.Close())
	require.NoError(tk.t, l.recv.Close())
}

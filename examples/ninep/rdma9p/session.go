package rdma9p

import "fmt"

// A session holds what the adapter knows of the requests of one connection. It does no IO.
//
// A request is in the table from when it is received until its answer is posted. The table holds at most depth requests: the
// handler gets no more at a time, and the peer waits. A tag is in the table at most once, and an answer whose tag is not in it is
// not sent: the peer would have no receive for it.
type session struct {
	maxMsize, depth int
	readOnly        bool

	msize    uint32 // of the last Rversion; 0: none yet, or the version was not agreed on
	granted  uint32 // the msize of the receives, set by the first session; 0: there was none
	asked    uint32 // the msize of the Tversion that waits for its answer
	requests []request
	fids     fidSet
}

// A request is a request that waits for its answer.
type request struct {
	tag   uint16
	typ   msgType
	read  bool   // the handler has read it completely
	as    errno  // if not 0, the answer is this error, whatever the handler answers
	fid   uint32 // the fid that it creates, or that of a Txattrcreate
	attr  uint32 // octets of the attribute that a Txattrcreate begins
	names uint16 // of a Twalk
	old   uint16 // of a Tflush: the tag
}

// A verdict says how a message of the peer is handled.
type verdict uint8

const (
	deliver verdict = iota // the handler gets it
	answer                 // the adapter answers it at once
	hold                   // the adapter answers it later: a Tflush
)

func newSession(maxMsize, depth, maxFids int, readOnly bool) *session {
	return &session{
		maxMsize: maxMsize, depth: depth, readOnly: readOnly,
		requests: make([]request, 0, depth), fids: fidSet{most: maxFids},
	}
}

// find returns the index of the request with a tag, or -1.
func (s *session) find(tag uint16) int {
	for i := range s.requests {
		if s.requests[i].tag == tag {
			return i
		}
	}
	return -1
}

// ready reports whether a message may be taken now. A Tversion is handled alone: it waits for all answers, and all messages
// wait for its answer. A handler need not be prepared for anything else.
func (s *session) ready(h header) bool {
	n := len(s.requests)
	if h.typ == tversion || n == 1 && s.requests[0].typ == tversion {
		return n == 0
	}
	return n < s.depth
}

// take takes a message of the peer, for which ready has returned true, and may change it. It appends the answer
// to out if there is one now.
func (s *session) take(msg, out []byte) (verdict, []byte, error) {
	h, err := checkMessage(msg)
	switch {
	case err != nil:
		return answer, nil, err
	case h.typ == tversion:
		return s.takeVersion(h, msg, out)
	case s.msize == 0:
		return answer, appendError(out, h.tag, eproto), nil
	case h.size > s.msize:
		return answer, nil, fmt.Errorf("%w: a message of %d octets, where msize is %d", ErrProtocol, h.size, s.msize)
	case s.find(h.tag) >= 0:
		return answer, appendError(out, h.tag, einval), nil
	case h.typ == tflush:
		return s.takeFlush(h, short(msg, 0), out)
	}
	r, refusal := s.note(h, msg)
	if refusal != 0 {
		return answer, appendError(out, h.tag, refusal), nil
	}
	s.requests = append(s.requests, r)
	return deliver, out, nil
}

// note records what a message of the peer requests, and may change the message. If the errno is not 0, it is the answer.
//
// A fid is counted from the answer to the request that creates it until its Tclunk or Tremove is taken, so that every fid of the
// handler counts, in whatever order it executes and answers requests. A fid that no longer exists counts only if the peer has
// given it up while the request that created it was outstanding.
func (s *session) note(h header, msg []byte) (request, errno) {
	r := request{tag: h.tag, typ: h.typ}
	if s.readOnly && changes(h, msg) {
		if h.typ != tremove {
			return r, erofs
		}
		msg[4] = byte(tclunk) // a Tremove gives up its fid even if it fails, and their bodies are equal
		r.typ, r.as = tclunk, erofs
	}
	switch r.typ {
	case tread, treaddir:
		limitCount(msg, s.msize-ioHeader)
	case tattach, tauth:
		r.fid = number(msg, 0)
	case twalk, txattrwalk, twalkgetattr:
		r.fid, r.names = number(msg, 4), short(msg, 8)
	case tclunk, tremove: // they end the fid even if they fail
		s.fids.remove(number(msg, 0))
	case txattrcreate:
		size := xattrSize(msg)
		r.fid, r.attr = number(msg, 0), uint32(size)
		return r, s.room(size)
	default: // nothing to record or to change
	}
	return r, 0
}

// room returns why the handler cannot hold another attribute of size octets, or 0. It holds an attribute until its fid is given up.
func (s *session) room(size uint64) errno {
	held := uint64(s.fids.attrs)
	for i := range s.requests {
		held += uint64(s.requests[i].attr)
	}
	switch {
	case size > maxXattr:
		return e2big
	case held+size > maxXattrs:
		return enospc
	}
	return 0
}

// takeVersion lowers the msize of a Tversion. The receives keep their size, so a later Tversion cannot raise it.
func (s *session) takeVersion(h header, msg, out []byte) (verdict, []byte, error) {
	msize, version, ok := parseVersion(msg)
	switch {
	case !ok:
		return answer, nil, fmt.Errorf("%w: a Tversion of %d octets", ErrProtocol, len(msg))
	case msize < minMsize:
		return answer, appendError(out, h.tag, einval), nil
	case !knownVersion(version):
		return answer, appendUnknown(out, h.tag, min(msize, uint32(s.maxMsize))), nil
	}
	s.asked = min(msize, uint32(s.maxMsize))
	if s.granted != 0 {
		s.asked = min(s.asked, s.granted)
	}
	setVersionSize(msg, s.asked)
	s.requests = append(s.requests, request{tag: h.tag, typ: tversion})
	return deliver, out, nil
}

// takeFlush answers a Tflush, or keeps it until the request with the old tag is answered: the peer may reuse the old tag once it has
// the Rflush. The handler does not see the Tflush, because handlers such as that of p9 let the two answers overtake each other,
// and never answer a Tflush of its own tag.
func (s *session) takeFlush(h header, old uint16, out []byte) (verdict, []byte, error) {
	if s.find(old) < 0 {
		return answer, appendFlushed(out, h.tag), nil
	}
	s.requests = append(s.requests, request{tag: h.tag, typ: tflush, old: old, read: true})
	return hold, out, nil
}

// wasRead records that the handler has read the whole message with the tag.
func (s *session) wasRead(tag uint16) {
	if i := s.find(tag); i >= 0 {
		s.requests[i].read = true
	}
}

// A plan says how an answer of the handler is handled.
type plan uint8

const (
	send    plan = iota
	refuse       // it is too long: an error is sent instead
	discard      // no request waits for it
)

// plan decides on an answer of the handler by its header.
func (s *session) plan(h header) (plan, error) {
	if h.size < headerSize {
		return discard, fmt.Errorf("%w: the handler wrote a message with size field %d", ErrProtocol, h.size)
	}
	i := s.find(h.tag)
	switch {
	case i < 0 && h.tag == noTag && h.typ == rlerror:
		return discard, fmt.Errorf("%w: the handler could not parse a message", ErrProtocol)
	case i < 0 || s.requests[i].typ == tflush:
		return discard, nil
	case !s.requests[i].read:
		return discard, fmt.Errorf("%w: the handler answered a message that it has not read", ErrProtocol)
	case h.size >= s.msize && h.size > inlineSize:
		return refuse, nil
	}
	return send, nil
}

// answered removes the request that msg answers from the table, and returns the answer to send, which uses the
// memory of msg.
func (s *session) answered(msg []byte) ([]byte, error) {
	h := parseHeader(msg)
	i := s.find(h.tag)
	r := s.requests[i]
	last := len(s.requests) - 1
	s.requests[i] = s.requests[last]
	s.requests = s.requests[:last]
	if r.typ == tversion {
		return msg, s.begin(h, msg)
	}
	if err := s.count(r, h, msg); err != nil {
		return nil, err
	}
	if r.as != 0 {
		return appendError(msg[:0], h.tag, r.as), nil
	}
	return msg, nil
}

// begin begins a session, if the handler has agreed to the version.
func (s *session) begin(h header, msg []byte) error {
	s.msize = 0
	if h.typ != rversion {
		return nil
	}
	msize, version, ok := parseVersion(msg)
	switch {
	case !ok:
		return fmt.Errorf("%w: the handler wrote an Rversion of %d octets", ErrProtocol, len(msg))
	case !knownVersion(version):
		return nil
	case msize < minMsize || msize > s.asked:
		return fmt.Errorf("%w: the handler's msize is %d, where %d was asked for", ErrProtocol, msize, s.asked)
	}
	s.msize = msize
	if s.granted == 0 {
		s.granted = msize
	}
	return nil
}

// count counts the fid that a request has created, or the attribute that it has begun.
func (s *session) count(r request, h header, msg []byte) error {
	if h.typ != r.typ+1 {
		return nil
	}
	switch r.typ {
	case tattach, tauth, txattrwalk, twalkgetattr, txattrcreate:
		return s.fids.add(r.fid, r.attr)
	case twalk: // if fewer names were found than requested, there is no new fid
		if short(msg, 0) == r.names {
			return s.fids.add(r.fid, 0)
		}
	default: // the others create none
	}
	return nil
}

// flushed appends the answer to a Tflush whose request has been answered, and reports whether there was one.
func (s *session) flushed(out []byte) ([]byte, bool) {
	for i, r := range s.requests {
		if r.typ == tflush && s.find(r.old) < 0 {
			last := len(s.requests) - 1
			s.requests[i] = s.requests[last]
			s.requests = s.requests[:last]
			return appendFlushed(out, r.tag), true
		}
	}
	return out, false
}

// A fidSet holds the fids that a peer has in use, and the lengths of the attributes that it has begun to set by them, so that both can be
// limited.
type fidSet struct {
	most  int
	attrs uint32 // octets of all attributes
	set   map[uint32]uint32
}

// add adds a fid, or an attribute to it. A previous attribute of the fid still counts if it is larger: it is not known which came last.
func (f *fidSet) add(fid, attr uint32) error {
	if f.set == nil {
		f.set = make(map[uint32]uint32)
	}
	had := f.set[fid]
	attr = max(attr, had)
	f.set[fid] = attr
	f.attrs += attr - had
	if len(f.set) > f.most {
		return fmt.Errorf("%w: more than %d fids in use", ErrProtocol, f.most)
	}
	return nil
}

func (f *fidSet) remove(fid uint32) {
	f.attrs -= f.set[fid]
	delete(f.set, fid)
}

package iwarp

// Extensions is a set of operations that go beyond RFC 5040, which not every peer has. The
// values stay as they are, so that two applications can tell each other in an octet of
// private data what their QPs take (RFC 7306 section 1.1).
type Extensions uint8

// The extensions.
const (
	ExtImmediate Extensions = 1 << iota // Immediate Data (RFC 7306 section 6)
	ExtAtomic                           // all atomic operations (RFC 7306 section 5)
	ExtCommit                           // RDMA Commit (draft-talpey-rdma-commit-00)
)

// Extensions is what this side of the QP takes from its peer. ExtCommit needs
// QPConfig.Commit, and where that negotiates, a peer that has offered it, too.
func (qp *QP) Extensions() Extensions {
	e := ExtImmediate | ExtAtomic
	if o := qp.cfg.Commit; o != nil && (qp.conn.Load() == nil || qp.commits.ext != nil) {
		e |= ExtCommit
	}
	return e
}

// PeerExtensions is what the peer is known to take: nothing at first. Known is what the
// application has told by SetPeerExtensions, what the peer has used itself or has answered,
// and RDMA Commit where both sides have offered it. An operation that is not in the set may
// still be posted. If the peer does not know it the connection ends, with an error that
// matches ErrUnsupported: a FetchAdd of 0, for one, finds out and changes nothing.
func (qp *QP) PeerExtensions() Extensions {
	e := Extensions(qp.peerExtensions.Load())
	if qp.conn.Load() == nil {
		return e
	}
	in := qp.Stats().Received
	if in.Immediate.Messages > 0 {
		e |= ExtImmediate
	}
	if in.AtomicRequest.Messages > 0 || in.AtomicResponse.Messages > 0 {
		e |= ExtAtomic
	}
	offered := qp.commits.ext != nil && qp.cfg.Commit.Negotiate
	if offered || in.CommitRequest.Messages > 0 || in.CommitResponse.Messages > 0 {
		e |= ExtCommit
	}
	return e
}

// SetPeerExtensions tells what the application has learned of the peer by means of its own,
// from its private data for one. It replaces what was told before. Nothing is sent.
func (qp *QP) SetPeerExtensions(e Extensions) { qp.peerExtensions.Store(uint32(e)) }

package iwarp

// Extensions is a set of operations beyond RFC 5040, which not every peer supports. The values
// will not change, so that applications can send them to each other in an octet of private
// data (RFC 7306 section 1.1).
type Extensions uint8

// The extensions.
const (
	ExtImmediate Extensions = 1 << iota // Immediate Data (RFC 7306 section 6)
	ExtAtomic                           // all atomic operations (RFC 7306 section 5)
	ExtCommit                           // RDMA Commit (draft-talpey-rdma-commit-00)
)

// Extensions returns the extensions that this side of the QP accepts from its peer. ExtCommit
// requires QPConfig.Commit and, if that negotiates, an offer of the peer.
func (qp *QP) Extensions() Extensions {
	e := ExtImmediate | ExtAtomic
	if o := qp.cfg.Commit; o != nil && (qp.conn.Load() == nil || qp.commits.ext != nil) {
		e |= ExtCommit
	}
	return e
}

// PeerExtensions returns the extensions that the peer is known to support. The set is empty at
// first. It contains the extensions that the application has passed to SetPeerExtensions, those
// that the peer has used or has answered, and RDMA Commit if both sides have offered it. An
// operation that is not in the set may still be posted, but if the peer does not support it
// the connection ends, with an error that matches ErrUnsupported. A FetchAdd of 0, for
// example, tests for atomic operations and changes nothing.
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

// SetPeerExtensions records what the application has learned about the peer by its own means,
// such as private data. It replaces the previous record. It sends nothing.
func (qp *QP) SetPeerExtensions(e Extensions) { qp.peerExtensions.Store(uint32(e)) }

package ddp

// An MSN numbers the messages of one untagged queue of one stream. The first is
// 1, and 0xffffffff is followed by 0 (RFC 5041 section 4.3), so that only the
// distance of two MSNs has a meaning.
type MSN uint32

const firstMSN MSN = 1

// Next returns the number of the following message.
func (m MSN) Next() MSN { return m + 1 }

// After returns how many messages m is ahead of due, modulo 2^32: an MSN that precedes
// due appears very far ahead of it.
func (m MSN) After(due MSN) uint32 { return uint32(m - due) }

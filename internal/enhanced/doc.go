// Package enhanced is the enhanced RDMA connection establishment data of RFC
// 6581 and its negotiation: the four octets in front of the private data that
// MPA's Request and Reply frames and SCTP's session control chunks have in
// common. It consists of pure functions.
package enhanced

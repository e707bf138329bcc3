// Package wire encodes and decodes what rsockets send in iWARP mode: the private data of the MPA Request
// and Reply, the messages of four octets, and the slots by which each side tells the other where to
// write.
package wire

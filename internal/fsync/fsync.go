// Package fsync makes files durable, and does not repeat a call that has failed.
//
// A system that could not write a page reports this once, with an errno of the disk, of the server or of the file system.
// It may be any errno, including EINTR. By then the octets are dropped, and another call succeeds without them. So on Linux
// these functions make one system call, and fail if it fails, while [os.File.Sync] calls again after EINTR. A call that a
// signal has interrupted fails, too, since the two cases cannot be told apart.
package fsync

// Package fsync makes files durable, and takes the first failure for the outcome.
//
// A system that could not write a page says so once, with the errno of the disk, of the server or of the file system.
// It may be any, EINTR too. The octets are dropped by then, and another call succeeds without them. So on Linux these
// functions make one call, and fail where it fails, while [os.File.Sync] calls again after EINTR. A call that a signal has
// interrupted fails, too, since the two cannot be told apart.
package fsync

// Package dirfs provides a directory to the server of github.com/hugelgupf/p9.
//
// On Linux a File holds one descriptor of the file itself, not of its name, so that renames above it have no effect. An open
// File holds a second descriptor. Every name is one component below an open directory, and the server never follows symbolic
// links. So a client sees nothing outside the directory except file systems mounted below it. Errors are those of the system.
// All operations use the rights of the process, which owns the files that clients make; the group is the client's, if the
// process may set it. When the process is out of descriptors the client gets EMFILE.
//
// Locks are open file description locks (F_OFD_SETLK): another process on the server's machine sees them as fcntl locks. They
// belong to a fid: two descriptors of one client process exclude each other. Device nodes are not made (EPERM) or opened.
//
// # Limits of the server
//
// The server of p9 v0.3.0 does not pass on Tgetlock. It answers every failure of Txattrwalk with EINVAL. When Txattrwalk succeeds, it loses
// a reference to the file and its directory, which it then closes while they are in use. So extended attributes can be set and
// removed, but not listed or read. The server drops the bits setuid and setgid from modes, and refuses to change the attributes of a
// file, except by writing, once the name under which the client found it is gone.
//
// On systems other than Linux the package uses fsimpl/localfs of p9, which can do less, and follows symbolic links.
package dirfs

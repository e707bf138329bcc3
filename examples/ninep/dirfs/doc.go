// Package dirfs shows a directory to the server of github.com/hugelgupf/p9.
//
// On Linux a File holds one descriptor, of the file itself and not of its name: a rename above it changes nothing. One that is open holds
// another. Every name is one
// component below an open directory, and symbolic links are never followed by the server, so a client sees nothing outside
// the directory but what is mounted below it. Errors are the system's own. All is done with the rights of the process,
// which owns what clients make; the group is the client's, if the process may set it. When the process is out of descriptors
// the client gets EMFILE.
//
// Locks are those of open files (F_OFD_SETLK): another process on the server's machine sees them as locks of fcntl. They
// belong to a fid: two descriptors of one process of the client exclude each other. Device nodes are not made (EPERM) or opened.
//
// # Limits of the server
//
// The server of p9 v0.3.0 does not pass on Tgetlock. It answers every failure of Txattrwalk with EINVAL, and when Txattrwalk succeeds it loses
// a reference of the file and its directory, which it then closes while they are in use; so extended attributes can be set
// and removed, but not listed or read. It drops the bits setuid and setgid from modes, and refuses to change the attributes of
// a file, other than by writing, once the name that the client found it by is gone.
//
// On other systems than Linux the package is fsimpl/localfs of p9, which can do less, and follows symbolic links.
package dirfs

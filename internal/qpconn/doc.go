// Package qpconn drives the connection of a queue pair.
package qpconn

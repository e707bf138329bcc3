//go:build !linux || purego

package machine

func fastPath() Fact {
	return Fact{
		Group: "transports", Name: "epoll", Lacks: true, Value: "missing: TCP goes through package net, with a goroutine for each connection",
		Remedy: "run on Linux, built without the tag purego",
	}
}

//go:build linux && !purego

package machine

func fastPath() Fact {
	return Fact{Group: "transports", Name: "epoll", Value: "TCP by epoll: an idle connection has no goroutine"}
}

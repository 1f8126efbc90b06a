package rig

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"time"
)

// upgrade is the request that opens a WebSocket (RFC 6455, section 4).
const upgrade = "GET /echo HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
	"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"

// WebSocket opens one to /echo.
func WebSocket(ctx context.Context, address string) (net.Conn, *bufio.Reader, error) {
	conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, nil, err
	}
	if _, err = io.WriteString(conn, upgrade); err != nil {
		return nil, nil, errors.Join(err, conn.Close())
	}
	r := bufio.NewReader(conn)
	answer, err := http.ReadResponse(r, nil)
	if err == nil && answer.StatusCode != http.StatusSwitchingProtocols {
		err = errors.New(answer.Status)
	}
	if err != nil {
		return nil, nil, errors.Join(err, conn.Close())
	}
	_ = answer.Body.Close() // none: the connection is the WebSocket's
	return conn, r, nil
}

// Echo sends a text of at most 125 bytes, masked with zeros, and reads it back.
func Echo(conn net.Conn, r *bufio.Reader, text string) error {
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return err
	}
	frame := append([]byte{0x81, 0x80 | byte(len(text)), 0, 0, 0, 0}, text...)
	if _, err := conn.Write(frame); err != nil {
		return err
	}
	back := make([]byte, 2+len(text))
	if _, err := io.ReadFull(r, back); err != nil {
		return err
	}
	if string(back[2:]) != text {
		return errors.New("another text came back")
	}
	return nil
}

package agent

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Small requests one behind the other are read at the client's rate over all its connections, and
// a probe of the same client passes beside them.
func TestIntake(t *testing.T) {
	var asked atomic.Int64
	l, address := boundedServer(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	const request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
	end := time.Now().Add(2 * time.Second)
	begin := time.Now()
	for range 8 {
		c := dial(t, address)
		go func() { _, _ = io.Copy(io.Discard, c) }()
		go func() {
			for err := error(nil); err == nil && time.Now().Before(end); {
				_, err = io.WriteString(c, strings.Repeat(request, 100))
			}
		}()
	}
	for time.Now().Before(end) {
		c := dial(t, address)
		_, err := io.WriteString(c, request)
		require.NoError(t, err)
		response, err := http.ReadResponse(bufio.NewReader(c), nil)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.NoError(t, c.Close())
		time.Sleep(50 * time.Millisecond)
	}
	most := (intakeBurst + intakeRate*int64(time.Since(begin)/time.Second+1)) / int64(len(request))
	require.Less(t, asked.Load(), most+1000)
	require.LessOrEqual(t, l.held(), maxConnections)
}

// What waits for its time goes when the connection does, and what would wait for too long is closed.
func TestIntakeOfClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newIntake(testLedger().Resource("intake"))
		l, closed := i.of("a"), make(chan struct{})
		require.True(t, i.wait(l, "a", intakeBurst, closed))
		begin := time.Now()
		require.True(t, i.wait(l, "a", intakeRate, closed))
		require.InDelta(t, time.Second, time.Since(begin), float64(time.Millisecond))
		require.True(t, i.wait(i.of("b"), "b", 100, closed), "another's is its own")
		go i.wait(l, "a", intakeRate, closed)
		synctest.Wait()
		require.False(t, i.wait(l, "a", intakeBurst, closed), "that would be three seconds")
		go func() { time.Sleep(time.Millisecond); close(closed) }()
		begin = time.Now()
		require.False(t, i.wait(i.of("a"), "a", intakeRate, closed))
		require.Less(t, time.Since(begin), time.Second)
	})
}

// However many addresses one has, all of them are read at a rate, and who asks for little waits for none of them.
func TestIntakeOfMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newIntake(testLedger().Resource("intake"))
		const clients, seconds, scrape = 40, 20, 5 << 10
		closed := make(chan struct{})
		end := time.Now().Add(seconds * time.Second)
		var read atomic.Int64
		for n := range clients {
			client := fmt.Sprint(n)
			for range 5 { // connections
				go func() {
					for time.Now().Before(end) {
						if i.wait(i.of(client), client, 4<<10, closed) {
							read.Add(4 << 10)
						}
						time.Sleep(10 * time.Millisecond)
					}
				}()
			}
		}
		for n := 0; time.Now().Before(end); n++ {
			begin := time.Now()
			require.True(t, i.wait(i.of("friend"), "friend", scrape, closed))
			require.Zero(t, time.Since(begin), "scrape %d", n)
			time.Sleep(2 * time.Second)
		}
		most := intakeOfAllBurst + clients*littleBurst + seconds*(intakeOfAll+clients*littleRate)
		require.Less(t, int(read.Load()), most+most/20)
		require.Greater(t, int(read.Load()), most/2)
		time.Sleep(10 * time.Second)
	})
}

// However many clients come, what is remembered of them is bounded, and given back.
func TestIntakeByChurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newIntake(testLedger().Resource("intake"))
		for n := range 3 * maxIntakes {
			i.of(fmt.Sprint(n)).whole.AllowN(time.Now(), 100)
			require.LessOrEqual(t, len(i.clients), maxIntakes)
		}
		require.Same(t, i.rest, i.of("another"), "beyond that they share one")
		time.Sleep(time.Minute)
		require.NotSame(t, i.rest, i.of("another"))
		require.Len(t, i.clients, 1)
	})
}

// A TLS handshake counts more than its bytes.
func TestIntakeOfHandshakes(t *testing.T) {
	l := newBoundedListener(nil, testLedger())
	l.tls = true
	server, client := net.Pipe()
	b := l.admit(server)
	go func() { _, _ = client.Write([]byte("hello")) }()
	_, err := b.Read(make([]byte, 100))
	require.NoError(t, err)
	require.Less(t, b.intake.whole.Tokens(), float64(intakeBurst-handshakeCost+1000))
	require.NoError(t, b.Close())
}

// Who has half of the port's connections opens more at a rate; another client's are taken.
func TestConnectionsAtARate(t *testing.T) {
	l := newBoundedListener(nil, testLedger())
	for range maxConnections / 2 {
		require.NotNil(t, l.admit(from(1)))
	}
	taken := 0
	for range 10_000 {
		if l.opens(clientOf(from(1))) {
			taken++
		}
	}
	require.Less(t, taken, 2*intakeBurst/connectionCost)
	require.True(t, l.opens(clientOf(from(2))))
	l.intake.of("10.0.0.3").whole.AllowN(time.Now(), intakeBurst)
	require.True(t, l.opens(clientOf(from(3))), "it has none")
}

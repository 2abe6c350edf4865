// People with LiveKit's Go SDK in a room of Bloom: one publishes sound and pictures, the others check what they get.
// With two connections each there are SUBSCRIBERS of them, with one there are two. Then a room moves to another node,
// and back as that one drains.
// Usage: livekit-go URL KEY SECRET SUBSCRIBERS SECONDS API-TOKEN, where the node at URL has another one beside it
package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	lksdk "github.com/livekit/server-sdk-go/v2"
	"github.com/pion/webrtc/v4"
	"github.com/pion/webrtc/v4/pkg/media"
)

const within = 20 * time.Second

// Longest pause of what a subscriber receives while its room moves.
const longestPause = 3 * time.Second

var url, key, secret, apiToken = os.Args[1], os.Args[2], os.Args[3], os.Args[6]

// A VP8 keyframe of 8x8 pixels.
var picture = []byte{
	0x10, 0x02, 0x00, 0x9d, 0x01, 0x2a, 0x08, 0x00, 0x08, 0x00, 0x00, 0x47, 0x08, 0x85, 0x85, 0x88,
	0x85, 0x84, 0x88, 0x02, 0x02, 0x00, 0x0c, 0x0d, 0x60, 0x00, 0xfe, 0xff, 0xab, 0x50, 0x80,
}

// Samples that end in their number, so that a receiver knows which one it has.
type numbered struct {
	lksdk.BaseSampleProvider
	data  []byte
	pause time.Duration
	sent  uint32
}

func (n *numbered) NextSample(context.Context) (media.Sample, error) {
	n.sent++
	return media.Sample{Data: binary.BigEndian.AppendUint32(n.data, n.sent), Duration: n.pause}, nil
}

// Numbers of the samples that one subscriber has received of one track. Some arrive twice: late ones that the SDK has
// already requested again.
type received map[uint32]bool

func (r received) take(payload []byte) {
	// The server has sent padding.
	if len(payload) < 4 {
		return
	}
	r[binary.BigEndian.Uint32(payload[len(payload)-4:])] = true
}

func (r received) lost() int {
	first, last := uint32(math.MaxUint32), uint32(0)
	for number := range r {
		first, last = min(first, number), max(last, number)
	}
	return int(last-first) + 1 - len(r)
}

type person struct {
	room        *lksdk.Room
	lock        sync.Mutex
	tracks      map[string]received
	last        time.Time
	pause       time.Duration
	data        chan string
	reconnects  atomic.Int32
	reconnected atomic.Int32
}

func join(room, identity string, options ...lksdk.ConnectOption) (*person, error) {
	p := &person{tracks: map[string]received{}, data: make(chan string, 8)}
	read := func(track *webrtc.TrackRemote, _ *lksdk.RemoteTrackPublication, _ *lksdk.RemoteParticipant) {
		for {
			packet, _, err := track.ReadRTP()
			if err != nil {
				return
			}
			p.lock.Lock()
			now := time.Now()
			if !p.last.IsZero() {
				p.pause = max(p.pause, now.Sub(p.last))
			}
			p.last = now
			if p.tracks[track.Kind().String()] == nil {
				p.tracks[track.Kind().String()] = received{}
			}
			p.tracks[track.Kind().String()].take(packet.Payload)
			p.lock.Unlock()
		}
	}
	callback := &lksdk.RoomCallback{
		OnReconnecting: func() { p.reconnects.Add(1) },
		OnReconnected:  func() { p.reconnected.Add(1) },
		ParticipantCallback: lksdk.ParticipantCallback{
			OnTrackSubscribed: read,
			OnDataPacket: func(packet lksdk.DataPacket, from lksdk.DataReceiveParams) {
				if user, ok := packet.(*lksdk.UserDataPacket); ok {
					p.data <- fmt.Sprint(from.SenderIdentity, " ", user.Topic, " ", string(user.Payload))
				}
			},
		},
	}
	info := lksdk.ConnectInfo{APIKey: key, APISecret: secret, RoomName: room, ParticipantIdentity: identity}
	var err error
	p.room, err = lksdk.ConnectToRoom(url, info, callback, options...)
	return p, err
}

func (p *person) publish(name, codec string, rate uint32, channels uint16, provider lksdk.SampleProvider) error {
	track, err := lksdk.NewLocalTrack(webrtc.RTPCodecCapability{MimeType: codec, ClockRate: rate, Channels: channels})
	if err != nil {
		return err
	}
	track.OnBind(func() { _ = track.StartWrite(provider, nil) })
	_, err = p.room.LocalParticipant.PublishTrack(track, &lksdk.TrackPublicationOptions{Name: name})
	return err
}

// Waits until all have at least so many samples of both tracks.
func arrived(people []*person, samples int, limit time.Duration) error {
	for until := time.Now().Add(limit); ; time.Sleep(20 * time.Millisecond) {
		missing := ""
		for i, p := range people {
			p.lock.Lock()
			for _, kind := range []string{"audio", "video"} {
				if got := len(p.tracks[kind]); got < samples {
					missing = fmt.Sprintf("subscriber %d has received %d samples of %s", i, got, kind)
				}
			}
			p.lock.Unlock()
		}
		if missing == "" {
			return nil
		}
		if time.Now().After(until) {
			return fmt.Errorf("%s within %v", missing, limit)
		}
	}
}

// Lets ann publish sound and pictures to subscribers, who receive both.
func gather(room string, subscribers int, options ...lksdk.ConnectOption) (ann *person, people []*person, err error) {
	defer func() {
		if err != nil {
			leave(ann, people)
		}
	}()
	if ann, err = join(room, "ann", options...); err != nil {
		return ann, people, fmt.Errorf("ann: %w", err)
	}
	for i := range subscribers {
		bob, err := join(room, fmt.Sprint("bob-", i), options...)
		if err != nil {
			return ann, people, fmt.Errorf("bob-%d: %w", i, err)
		}
		people = append(people, bob)
	}
	sound := &numbered{data: []byte{0xf8, 0xff, 0xfe}, pause: 20 * time.Millisecond}
	if err := ann.publish("mic", webrtc.MimeTypeOpus, 48_000, 2, sound); err != nil {
		return ann, people, fmt.Errorf("publish sound: %w", err)
	}
	pictures := &numbered{data: picture, pause: time.Second / 15}
	if err := ann.publish("cam", webrtc.MimeTypeVP8, 90_000, 0, pictures); err != nil {
		return ann, people, fmt.Errorf("publish pictures: %w", err)
	}
	return ann, people, arrived(people, 20, within)
}

func leave(ann *person, people []*person) {
	for _, p := range append(people, ann) {
		if p != nil && p.room != nil {
			p.room.Disconnect()
		}
	}
}

// Sends a message, which the first subscriber has to receive.
func pass(ann *person, people []*person, reliable bool) error {
	options := []lksdk.DataPublishOption{
		lksdk.WithDataPublishReliable(reliable), lksdk.WithDataPublishTopic("t"),
	}
	if err := ann.room.LocalParticipant.PublishDataPacket(lksdk.UserData([]byte("hello")), options...); err != nil {
		return fmt.Errorf("publish data: %w", err)
	}
	select {
	case got := <-people[0].data:
		if got != "ann t hello" {
			return fmt.Errorf("received %q", got)
		}
	case <-time.After(within):
		return fmt.Errorf("no data arrived, reliable: %v", reliable)
	}
	return nil
}

func call(room string, subscribers int, span time.Duration, options ...lksdk.ConnectOption) error {
	ann, people, err := gather(room, subscribers, options...)
	if err != nil {
		return err
	}
	defer leave(ann, people)
	for _, reliable := range []bool{true, false} {
		if err := pass(ann, people, reliable); err != nil {
			return err
		}
	}
	time.Sleep(span)
	var lost, samples int
	for i, p := range people {
		if p.reconnects.Load() > 0 {
			return fmt.Errorf("subscriber %d had to reconnect", i)
		}
		p.lock.Lock()
		for _, got := range p.tracks {
			lost, samples = lost+got.lost(), samples+len(got)
		}
		p.lock.Unlock()
	}
	fmt.Println(room, "received", samples, "lost", lost)
	if lost > 0 {
		return fmt.Errorf("%d samples are lost, %d arrived", lost, samples)
	}
	return nil
}

// Calls the API of the node, again for a while if it refuses.
func order(method, path, body string) error {
	for until := time.Now().Add(within); ; time.Sleep(100 * time.Millisecond) {
		request, err := http.NewRequest(method, url+path, strings.NewReader(body))
		if err != nil {
			return err
		}
		request.Header.Set("Authorization", "Bearer "+apiToken)
		request.Header.Set("Content-Type", "application/json")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		text, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if response.StatusCode < 300 {
			return nil
		}
		if time.Now().After(until) {
			return fmt.Errorf("%s %s: %d %s", method, path, response.StatusCode, text)
		}
	}
}

// Moves the room of a call to this node, and away as it drains. Everybody comes back once each time, and receives again.
func moved(room string, options ...lksdk.ConnectOption) error {
	// The room begins at the other node.
	if err := order(http.MethodPost, "/node/drain", "{}"); err != nil {
		return err
	}
	ann, people, err := gather(room, 2, options...)
	if err != nil {
		return err
	}
	defer leave(ann, people)
	if err := order(http.MethodDelete, "/node/drain", ""); err != nil {
		return err
	}
	if err := follow(ann, people, 1, "/room/"+room+"/move", "{}"); err != nil {
		return err
	}
	if err := follow(ann, people, 2, "/node/drain", `{"move":true}`); err != nil {
		return err
	}
	return order(http.MethodDelete, "/node/drain", "")
}

// Gives an order that moves the room for the n-th time.
func follow(ann *person, people []*person, n int32, path, body string) error {
	everybody := append(people, ann)
	for _, p := range everybody {
		p.lock.Lock()
		p.pause = 0
		p.lock.Unlock()
	}
	if err := order(http.MethodPost, path, body); err != nil {
		return err
	}
	from := time.Now()
	for _, p := range everybody {
		for p.reconnected.Load() < n {
			if time.Since(from) > within {
				return fmt.Errorf("%s has not come back", p.room.LocalParticipant.Identity())
			}
			time.Sleep(10 * time.Millisecond)
		}
		p.lock.Lock()
		p.tracks = map[string]received{}
		p.lock.Unlock()
	}
	if err := arrived(people, 20, within); err != nil {
		return fmt.Errorf("after POST %s: %w", path, err)
	}
	var longest time.Duration
	for _, p := range everybody {
		p.lock.Lock()
		longest = max(longest, p.pause)
		p.lock.Unlock()
		if count := p.reconnects.Load(); count != n {
			return fmt.Errorf("%s had to reconnect %d times", p.room.LocalParticipant.Identity(), count)
		}
	}
	fmt.Println("POST", path, "paused reception for", longest)
	if longest > longestPause {
		return fmt.Errorf("POST %s paused reception for %v", path, longest)
	}
	return pass(ann, people, true)
}

func main() {
	subscribers, _ := strconv.Atoi(os.Args[4])
	seconds, _ := strconv.Atoi(os.Args[5])
	span := time.Duration(seconds) * time.Second
	modes := []struct {
		room        string
		subscribers int
		options     []lksdk.ConnectOption
	}{
		{"go-two", subscribers, nil},
		{"go-one", 2, []lksdk.ConnectOption{lksdk.WithSinglePeerConnection()}},
	}
	for _, mode := range modes {
		if err := call(mode.room, mode.subscribers, span, mode.options...); err != nil {
			fmt.Fprintln(os.Stderr, mode.room+":", err)
			os.Exit(1)
		}
		if err := moved(mode.room+"-moved", mode.options...); err != nil {
			fmt.Fprintln(os.Stderr, mode.room+", moved:", err)
			os.Exit(1)
		}
	}
}

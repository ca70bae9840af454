// The client in Go; see ../README.md.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const mostMessageBytes = 8 << 20

var both = &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}

type call struct {
	conn     *grpc.ClientConn
	ctx      context.Context
	replies  []string
	initial  metadata.MD
	trailing metadata.MD
}

func main() {
	conn, err := grpc.NewClient("passthrough:///"+os.Args[1],
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(mostMessageBytes)))
	if err != nil {
		panic(err)
	}
	ctx := metadata.AppendToOutgoingContext(context.Background(), "echo-text", "some text", "echo-bin", "\x00\xff\x80,\n")
	c := &call{conn: conn, ctx: ctx}
	err = c.run(os.Args[2], os.Args[3])
	ended := status.Convert(err)
	json.NewEncoder(os.Stdout).Encode(map[string]any{
		"code":     ended.Code(),
		"message":  ended.Message(),
		"replies":  append([]string{}, c.replies...),
		"initial":  readable(c.initial),
		"trailing": readable(c.trailing),
	})
}

func (c *call) run(command, argument string) error {
	switch command {
	case "once":
		return c.unary("Once", argument)
	case "fail":
		return c.unary("Fail", argument)
	case "large":
		return c.large(argument)
	case "split":
		return c.stream("Split", []string{argument})
	case "join":
		return c.stream("Join", strings.Fields(argument))
	case "converse":
		return c.converse()
	case "deadline":
		return c.deadline(argument)
	case "cancel":
		return c.cancel(argument)
	case "many":
		return c.many(argument)
	}
	return fmt.Errorf("no command is named %s", command)
}

func (c *call) unary(method, text string) error {
	reply := new(wrapperspb.BytesValue)
	err := c.conn.Invoke(c.ctx, path(method), wrapperspb.Bytes([]byte(text)), reply,
		grpc.Header(&c.initial), grpc.Trailer(&c.trailing))
	if err == nil {
		c.replies = []string{string(reply.Value)}
	}
	return err
}

// large answers the number of bytes in place of the reply, once they are known to be the same.
func (c *call) large(argument string) error {
	size, _ := strconv.Atoi(argument)
	sent := bytes.Repeat([]byte("0123456789abcdef"), size/16)
	if err := c.unary("Once", string(sent)); err != nil {
		return err
	}
	if c.replies[0] != string(sent) {
		return fmt.Errorf("the reply differs")
	}
	c.replies = []string{strconv.Itoa(len(sent))}
	return nil
}

// stream sends all messages, and then reads all replies.
func (c *call) stream(method string, messages []string) error {
	stream, err := c.conn.NewStream(c.ctx, both, path(method))
	if err != nil {
		return err
	}
	for _, message := range messages {
		if err := send(stream, message); err != nil {
			break
		}
	}
	stream.CloseSend()
	for {
		if err := c.receive(stream); err != nil {
			return c.end(stream, err)
		}
	}
}

// converse sends each line of the input, and prints the reply before it reads another.
func (c *call) converse() error {
	stream, err := c.conn.NewStream(c.ctx, both, path("Converse"))
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		if err := send(stream, lines.Text()); err != nil && err != io.EOF {
			return err
		}
		if err := c.receive(stream); err != nil {
			return c.end(stream, err)
		}
		fmt.Println(c.replies[len(c.replies)-1])
	}
	stream.CloseSend()
	return c.end(stream, c.receive(stream))
}

func (c *call) deadline(argument string) error {
	if err := c.unary("Once", "connected"); err != nil {
		return err
	}
	ms, _ := strconv.Atoi(argument)
	ctx, cancel := context.WithTimeout(c.ctx, time.Duration(ms)*time.Millisecond)
	defer cancel()
	c.ctx = ctx
	return c.unary("Hang", "")
}

func (c *call) cancel(text string) error {
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	stream, err := c.conn.NewStream(ctx, both, path("Linger"))
	if err != nil {
		return err
	}
	if err := send(stream, text); err != nil {
		return err
	}
	stream.CloseSend()
	if err := c.receive(stream); err != nil {
		return c.end(stream, err)
	}
	cancel()
	return c.end(stream, c.receive(stream))
}

// many opens streams and ends none before a reply has come on each.
func (c *call) many(argument string) error {
	count, _ := strconv.Atoi(argument)
	var answered, ended sync.WaitGroup
	answered.Add(count)
	errs := make(chan error, count)
	for range count {
		ended.Go(func() {
			errs <- func() error {
				stream, err := c.conn.NewStream(c.ctx, both, path("Converse"))
				if err == nil {
					err = send(stream, "one of many")
				}
				reply := new(wrapperspb.BytesValue)
				if err == nil {
					err = stream.RecvMsg(reply)
				}
				answered.Done()
				if err != nil {
					return err
				}
				answered.Wait()
				stream.CloseSend()
				if err := stream.RecvMsg(reply); err != io.EOF {
					return err
				}
				return nil
			}()
		})
	}
	ended.Wait()
	for range count {
		if err := <-errs; err != nil {
			return err
		}
	}
	c.replies = []string{argument}
	return nil
}

func (c *call) receive(stream grpc.ClientStream) error {
	reply := new(wrapperspb.BytesValue)
	err := stream.RecvMsg(reply)
	if err == nil {
		c.replies = append(c.replies, string(reply.Value))
	}
	return err
}

func (c *call) end(stream grpc.ClientStream, err error) error {
	c.initial, _ = stream.Header()
	c.trailing = stream.Trailer()
	if err == io.EOF {
		return nil
	}
	return err
}

func send(stream grpc.ClientStream, text string) error {
	return stream.SendMsg(wrapperspb.Bytes([]byte(text)))
}

func path(method string) string {
	return "/tokensidecar.e2e.Echo/" + method
}

// readable has the values of binary metadata in hexadecimal.
func readable(values metadata.MD) map[string]string {
	texts := map[string]string{}
	for name, all := range values {
		text := strings.Join(all, ", ")
		if strings.HasSuffix(name, "-bin") {
			text = hex.EncodeToString([]byte(text))
		}
		texts[name] = text
	}
	return texts
}

import com.google.gson.Gson;
import com.google.protobuf.ByteString;
import com.google.protobuf.BytesValue;
import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.MethodDescriptor.MethodType;
import io.grpc.Status;
import io.grpc.protobuf.ProtoUtils;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** The client in Java; see ../README.md. */
class Client {
  static final int MOST_MESSAGE_BYTES = 8 << 20;

  /** One call: what it has brought, and its end. */
  static class Call extends ClientCall.Listener<BytesValue> {
    final ClientCall<BytesValue, BytesValue> call;
    final List<String> replies = new ArrayList<>();
    final CountDownLatch ended = new CountDownLatch(1);
    Metadata initial = new Metadata();
    Metadata trailing = new Metadata();
    Status status;

    Call(ManagedChannel channel, String method, MethodType type, CallOptions options) {
      var descriptor = MethodDescriptor.<BytesValue, BytesValue>newBuilder()
          .setType(type)
          .setFullMethodName("tokensidecar.e2e.Echo/" + method)
          .setRequestMarshaller(ProtoUtils.marshaller(BytesValue.getDefaultInstance()))
          .setResponseMarshaller(ProtoUtils.marshaller(BytesValue.getDefaultInstance()))
          .build();
      call = channel.newCall(descriptor, options);
      var metadata = new Metadata();
      metadata.put(Metadata.Key.of("echo-text", Metadata.ASCII_STRING_MARSHALLER), "some text");
      metadata.put(Metadata.Key.of("echo-bin", Metadata.BINARY_BYTE_MARSHALLER),
          new byte[] {0x00, (byte) 0xff, (byte) 0x80, 0x2c, 0x0a});
      call.start(this, metadata);
      call.request(Integer.MAX_VALUE);
    }

    Call send(String text) {
      call.sendMessage(BytesValue.of(ByteString.copyFromUtf8(text)));
      return this;
    }

    Call end() throws InterruptedException {
      call.halfClose();
      ended.await();
      return this;
    }

    @Override
    public void onHeaders(Metadata headers) {
      initial = headers;
    }

    @Override
    public void onMessage(BytesValue message) {
      replies.add(message.getValue().toStringUtf8());
    }

    @Override
    public void onClose(Status status, Metadata trailers) {
      this.status = status;
      trailing = trailers;
      ended.countDown();
    }
  }

  final ManagedChannel channel;

  Client(ManagedChannel channel) {
    this.channel = channel;
  }

  public static void main(String[] args) throws Exception {
    var channel = Grpc.newChannelBuilder("dns:///" + args[0], InsecureChannelCredentials.create())
        .maxInboundMessageSize(MOST_MESSAGE_BYTES)
        .build();
    var call = new Client(channel).run(args[1], args[2]);
    channel.shutdown();
    var answer = new LinkedHashMap<String, Object>();
    answer.put("code", call.status.getCode().value());
    answer.put("message", call.status.getDescription() == null ? "" : call.status.getDescription());
    answer.put("replies", call.replies);
    answer.put("initial", readable(call.initial));
    answer.put("trailing", readable(call.trailing));
    System.out.println(new Gson().toJson(answer));
    channel.awaitTermination(10, TimeUnit.SECONDS);
  }

  Call run(String command, String argument) throws Exception {
    return switch (command) {
      case "once" -> unary("Once", argument, CallOptions.DEFAULT);
      case "fail" -> unary("Fail", argument, CallOptions.DEFAULT);
      case "deadline" -> deadline(Long.parseLong(argument));
      case "large" -> large(Integer.parseInt(argument));
      case "split" -> open("Split", MethodType.SERVER_STREAMING).send(argument).end();
      case "join" -> join(argument);
      case "converse" -> converse();
      case "cancel" -> cancel(argument);
      case "many" -> many(Integer.parseInt(argument));
      default -> throw new IllegalArgumentException("no command is named " + command);
    };
  }

  Call open(String method, MethodType type) {
    return new Call(channel, method, type, CallOptions.DEFAULT);
  }

  Call unary(String method, String text, CallOptions options) throws InterruptedException {
    return new Call(channel, method, MethodType.UNARY, options).send(text).end();
  }

  Call deadline(long ms) throws InterruptedException {
    unary("Once", "connected", CallOptions.DEFAULT);
    return unary("Hang", "", CallOptions.DEFAULT.withDeadlineAfter(ms, TimeUnit.MILLISECONDS));
  }

  /** Answers the number of bytes in place of the reply, once they are known to be the same. */
  Call large(int size) throws InterruptedException {
    var sent = "0123456789abcdef".repeat(size / 16);
    var call = unary("Once", sent, CallOptions.DEFAULT);
    call.replies.replaceAll(reply -> reply.equals(sent) ? String.valueOf(size) : "the reply differs");
    return call;
  }

  Call join(String text) throws InterruptedException {
    var call = open("Join", MethodType.CLIENT_STREAMING);
    for (var word : text.split(" ")) call.send(word);
    return call.end();
  }

  /** Sends each line of the input, and prints the reply before it reads another. */
  Call converse() throws Exception {
    var call = new Call(channel, "Converse", MethodType.BIDI_STREAMING, CallOptions.DEFAULT) {
      @Override
      public void onMessage(BytesValue message) {
        super.onMessage(message);
        System.out.println(message.getValue().toStringUtf8());
      }
    };
    var lines = new BufferedReader(new InputStreamReader(System.in));
    for (var line = lines.readLine(); line != null; line = lines.readLine()) call.send(line);
    return call.end();
  }

  Call cancel(String text) throws InterruptedException {
    return new Call(channel, "Linger", MethodType.SERVER_STREAMING, CallOptions.DEFAULT) {
      @Override
      public void onMessage(BytesValue message) {
        super.onMessage(message);
        call.cancel("as asked for", null);
      }
    }.send(text).end();
  }

  /** Opens streams and ends none before a reply has come on each. */
  Call many(int count) throws InterruptedException {
    var waiting = new CountDownLatch(count);
    var calls = new ArrayList<Call>();
    for (var index = 0; index < count; index++) {
      calls.add(new Call(channel, "Converse", MethodType.BIDI_STREAMING, CallOptions.DEFAULT) {
        @Override
        public void onMessage(BytesValue message) {
          waiting.countDown();
        }

        @Override
        public void onClose(Status status, Metadata trailers) {
          super.onClose(status, trailers);
          waiting.countDown();
        }
      }.send("one of many"));
    }
    waiting.await();
    for (var call : calls) call.end();
    var failed = calls.stream().filter(call -> !call.status.isOk()).findFirst();
    var call = failed.orElse(calls.get(0));
    if (call.status.isOk()) call.replies.add(String.valueOf(count));
    return call;
  }

  /** Has the values of binary metadata in hexadecimal. */
  static Map<String, String> readable(Metadata metadata) {
    var texts = new LinkedHashMap<String, String>();
    for (var name : metadata.keys()) {
      texts.put(name, name.endsWith(Metadata.BINARY_HEADER_SUFFIX)
          ? HexFormat.of().formatHex(metadata.get(Metadata.Key.of(name, Metadata.BINARY_BYTE_MARSHALLER)))
          : metadata.get(Metadata.Key.of(name, Metadata.ASCII_STRING_MARSHALLER)));
    }
    return texts;
  }
}

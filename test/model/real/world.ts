import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { connect as connectTls, createSecureContext, type SecureContext, TLSSocket } from 'node:tls';
import type { ListenAddress } from '../../../src/platform/net/address.ts';
import { type Network, systemNetwork } from '../../../src/proxy/io/network.ts';
import type { Version } from '../walk.ts';
import type { Connecting, PeerEnd, World, Written } from '../world.ts';

/** As many turns without a byte, a connection or an end anywhere are taken for rest. */
const QUIET_TURNS = 8;

const MAX_TURNS = 20_000;

export interface UpstreamIdentity {
  readonly caFile: string;
  readonly cert: string;
  readonly key: string;
  /** What is chosen by ALPN, where it is offered. */
  readonly protocol: Version;
}

/** Sockets of loopback. All ends are in this process, so that rest can be told. */
export class RealWorld implements World {
  readonly network: Network;
  readonly caFile: string | undefined;
  onUpstream: (end: PeerEnd) => void = () => {};
  onWritten: (written: Written) => void = () => {};
  onTurn: () => void = () => {};
  readonly #server: Server;
  readonly #secureContext: SecureContext | undefined;
  readonly #protocols: readonly string[];
  readonly #upstream = new Set<Socket>();
  readonly #peers = new Set<Socket>();
  #connecting: Connecting = 'made';
  #held: (() => void)[] = [];
  #happened = 0;

  static async start(identity: UpstreamIdentity | undefined): Promise<RealWorld> {
    const world = new RealWorld(identity);
    world.#server.listen(0, '127.0.0.1');
    await once(world.#server, 'listening');
    return world;
  }

  private constructor(identity: UpstreamIdentity | undefined) {
    this.caFile = identity?.caFile;
    this.#protocols = identity === undefined ? [] : [identity.protocol];
    this.#secureContext = identity === undefined ? undefined : createSecureContext(identity);
    this.#server = createServer({ allowHalfOpen: true, noDelay: true, pauseOnConnect: true }, (socket) =>
      this.#arrived(socket),
    );
    this.network = {
      connectTcp: (options) => this.#watch(connect(options)),
      connectTls: (options) => this.#watch(connectTls(options)),
      createServer: (options, onAccepted) =>
        systemNetwork.createServer(options, (socket) => {
          this.#happened += 1;
          onAccepted(socket);
        }),
      findPeers: systemNetwork.findPeers,
    };
  }

  get upstreamAddress(): ListenAddress {
    return { host: '127.0.0.1', port: (this.#server.address() as AddressInfo).port };
  }

  get connecting(): Connecting {
    return this.#connecting;
  }

  /** The system accepts a plain connection whatever is said here; what is held of it is the handshake of TLS. */
  set connecting(are: Connecting) {
    this.#connecting = are;
    if (are !== 'held') for (const go of this.#held.splice(0)) go();
  }

  connectApp(address: ListenAddress): PeerEnd {
    const socket = connect({ ...address, allowHalfOpen: true, noDelay: true });
    return this.#peer(socket, socket, 0);
  }

  async turn(): Promise<void> {
    await turnOfTheLoop();
    this.onTurn();
  }

  async settle(): Promise<void> {
    let before = this.#signature();
    for (let turn = 0, quiet = 0; quiet < QUIET_TURNS; turn++) {
      if (turn > MAX_TURNS) throw new Error(`something still happens after ${MAX_TURNS} turns`);
      await this.turn();
      const now = this.#signature();
      quiet = now === before ? quiet + 1 : 0;
      before = now;
    }
  }

  get openUpstream(): number {
    return this.#upstream.size;
  }

  async close(): Promise<void> {
    for (const socket of [...this.#peers, ...this.#upstream]) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }

  /** Keeps an eye on a connection of the data path to the upstream. */
  #watch<S extends Socket>(socket: S): S {
    this.#happened += 1;
    this.#upstream.add(socket);
    let ended = false;
    socket.once('end', () => {
      ended = true;
      this.#happened += 1;
    });
    socket.once('close', () => {
      this.#happened += 1;
      this.#upstream.delete(socket);
    });
    const write = socket.write.bind(socket) as (...all: unknown[]) => boolean;
    socket.write = ((chunk: Buffer | string, ...others: unknown[]) => {
      const bytes = Buffer.from(chunk as string, others[0] as BufferEncoding);
      this.onWritten({ connection: socket.localPort ?? 0, bytes, alive: !ended && !socket.destroyed });
      return write(chunk, ...others);
    }) as typeof socket.write;
    return socket;
  }

  #arrived(raw: Socket): void {
    this.#happened += 1;
    this.#peers.add(raw);
    raw.once('close', () => this.#peers.delete(raw));
    raw.on('error', () => raw.destroy());
    const go = (): void => {
      if (this.#connecting === 'refused') {
        raw.resetAndDestroy();
        return;
      }
      const port = raw.remotePort ?? 0;
      if (this.#secureContext === undefined) {
        this.onUpstream(this.#peer(raw, raw, port));
        // Accepted paused: PING, too, is answered only by a peer that reads.
        raw.resume();
        return;
      }
      const secured = new TLSSocket(raw, {
        isServer: true,
        secureContext: this.#secureContext,
        ALPNProtocols: [...this.#protocols],
      });
      secured.once('secure', () => this.onUpstream(this.#peer(secured, raw, port)));
      secured.on('error', () => raw.destroy());
    };
    if (this.#connecting === 'held' && this.#secureContext !== undefined) this.#held.push(go);
    else go();
  }

  #peer(socket: Socket, raw: Socket, id: number): PeerEnd {
    this.#peers.add(raw);
    raw.once('close', () => {
      this.#happened += 1;
      this.#peers.delete(raw);
    });
    let told = false;
    const end: PeerEnd = {
      id,
      onBytes: () => {},
      onEnd: () => {},
      write: (bytes) => void socket.write(bytes),
      end: () => void socket.end(),
      close: () => void socket.destroySoon(),
      // Node never closes a socket that is reset while it is being made or ended.
      reset: () => void (raw.connecting || raw.writableEnded ? raw.destroy() : raw.resetAndDestroy()),
      pause: () => void socket.pause(),
      resume: () => void socket.resume(),
    };
    const tell = (how: 'ended' | 'reset'): void => {
      this.#happened += 1;
      if (told) return;
      told = true;
      end.onEnd(how);
    };
    socket.on('data', (bytes: Buffer) => {
      this.#happened += 1;
      end.onBytes(bytes);
    });
    socket.on('end', () => tell('ended'));
    socket.on('error', () => {
      tell('reset');
      raw.destroy();
    });
    socket.on('close', () => tell('reset'));
    return end;
  }

  #signature(): number {
    let sum = this.#happened;
    for (const { bytesRead, bytesWritten } of [...this.#peers, ...this.#upstream]) {
      sum += bytesRead + bytesWritten;
    }
    return sum;
  }
}

function turnOfTheLoop(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

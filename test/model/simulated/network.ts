import { EventEmitter } from 'node:events';
import type { OnReadOpts, Server, Socket, TcpNetConnectOpts } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { ListenAddress } from '../../../src/platform/net/address.ts';
import type { Network } from '../../../src/proxy/io/network.ts';
import type { Version } from '../walk.ts';
import type { Connecting, PeerEnd, World, Written } from '../world.ts';
import { SimulatedSocket } from './socket.ts';
import { Turns } from './turns.ts';

/** Sockets that lead nowhere but to the model, and an event loop whose turns it takes. */
export class SimulatedWorld implements World {
  readonly network: Network;
  readonly upstreamAddress = { host: '127.0.0.1', port: 9 };
  readonly caFile: string | undefined;
  connecting: Connecting = 'made';
  onUpstream: (end: PeerEnd) => void = () => {};
  onWritten: (written: Written) => void = () => {};
  onTurn: () => void = () => {};
  readonly #turns = new Turns(() => this.onTurn());
  readonly #app = new Set<SimulatedSocket>();
  readonly #upstream = new Set<SimulatedSocket>();
  #held: (() => void)[] = [];
  #onAccepted: (socket: Socket) => void = () => {};
  #next = 1;

  /** @param protocol what the upstream chooses by ALPN, where it is offered. */
  constructor(caFile: string | undefined, protocol: Version) {
    this.caFile = caFile;
    this.network = {
      connectTcp: ({ onread }) => this.#dial('plain', onread) as unknown as Socket,
      connectTls: (options) => {
        const socket = this.#dial('tls', (options as TcpNetConnectOpts).onread);
        const offered = options.ALPNProtocols as readonly string[] | undefined;
        if (offered?.includes(protocol)) socket.alpnProtocol = protocol;
        return socket as unknown as TLSSocket;
      },
      createServer: (_options, onAccepted) => {
        this.#onAccepted = onAccepted;
        return new SimulatedServer() as unknown as Server;
      },
      findPeers: async (accepted) =>
        accepted.map((socket) => ((socket as unknown as SimulatedSocket).peer.isGone ? 'left' : 'held')),
    };
  }

  connectApp(_address: ListenAddress): PeerEnd {
    const socket = this.#socket(this.#app, 'plain', undefined, true);
    this.#turns.deliver(() => void this.#onAccepted(socket as unknown as Socket));
    return socket.peer;
  }

  async turn(): Promise<void> {
    this.#release();
    await this.#turns.turn();
  }

  async settle(): Promise<void> {
    this.#release();
    await this.#turns.settle();
  }

  get openUpstream(): number {
    return this.#upstream.size;
  }

  async close(): Promise<void> {
    for (const socket of [...this.#app, ...this.#upstream]) socket.destroy();
    await this.#turns.settle();
  }

  #dial(transport: 'plain' | 'tls', onread: OnReadOpts | undefined): SimulatedSocket {
    const socket = this.#socket(this.#upstream, transport, onread, false);
    const write = socket.write.bind(socket) as (...all: unknown[]) => boolean;
    let ended = false;
    socket.once('end', () => {
      ended = true;
    });
    socket.write = ((chunk: Buffer | string, ...others: unknown[]) => {
      const bytes = Buffer.from(chunk as string, others[0] as BufferEncoding);
      this.onWritten({ connection: socket.id, bytes, alive: !ended && !socket.destroyed });
      return write(chunk, ...others);
    }) as typeof socket.write;
    this.#held.push(() => this.#connect(socket, transport));
    if (this.connecting !== 'held') this.#release();
    return socket;
  }

  #release(): void {
    if (this.connecting === 'held') return;
    for (const connect of this.#held.splice(0)) connect();
  }

  #connect(socket: SimulatedSocket, transport: 'plain' | 'tls'): void {
    if (this.connecting === 'refused') {
      this.#turns.deliver(() => {
        socket.destroy(Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' }));
        return undefined;
      });
      return;
    }
    this.#turns.deliver(() => {
      if (socket.destroyed) return undefined;
      if (transport === 'plain') this.onUpstream(socket.peer);
      socket.connected();
      if (transport === 'tls') this.#turns.deliver(() => this.#secure(socket));
      return undefined;
    });
  }

  /** Nobody speaks before that but TLS itself. */
  #secure(socket: SimulatedSocket): undefined {
    if (socket.destroyed) return;
    this.onUpstream(socket.peer);
    socket.secured();
  }

  #socket(
    among: Set<SimulatedSocket>,
    transport: 'plain' | 'tls',
    onread: OnReadOpts | undefined,
    connected: boolean,
  ): SimulatedSocket {
    const socket = new SimulatedSocket({
      id: this.#next++,
      turns: this.#turns,
      transport,
      onread,
      connected,
    });
    among.add(socket);
    socket.on('close', () => among.delete(socket));
    return socket;
  }
}

/** Listens nowhere: connections are handed to it. */
class SimulatedServer extends EventEmitter {
  listen(_options: unknown, listening: () => void): this {
    process.nextTick(listening);
    return this;
  }

  address(): object {
    return { address: '127.0.0.1', family: 'IPv4', port: 1 };
  }

  close(done?: () => void): this {
    if (done !== undefined) process.nextTick(done);
    return this;
  }
}

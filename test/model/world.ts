import type { ListenAddress } from '../../src/platform/net/address.ts';
import type { Network } from '../../src/proxy/io/network.ts';

/** A peer's end of a connection to the data path. */
export interface PeerEnd {
  /** Tells connections apart; the same at both ends. */
  readonly id: number;
  /** Called with what comes, once it is read. */
  onBytes: (bytes: Buffer) => void;
  /** The data path has ended its side, or reset the connection. */
  onEnd: (how: 'ended' | 'reset') => void;
  write(bytes: Buffer): void;
  /** Ends this side; what comes is read on. */
  end(): void;
  /** Lets the connection go, as a process that closes its socket. */
  close(): void;
  reset(): void;
  pause(): void;
  resume(): void;
}

export type Connecting = 'held' | 'made' | 'refused';

/** One request head or a part of it that the data path wrote, and the state of the connection that it wrote to. */
export interface Written {
  readonly connection: number;
  readonly bytes: Buffer;
  /** False when the data path had been told of the connection's end, or had given it up. */
  readonly alive: boolean;
}

/** What a walk happens in: real sockets or simulated ones. */
export interface World {
  readonly network: Network;
  readonly upstreamAddress: ListenAddress;
  /** Trusted by the data path for `tls`. */
  readonly caFile: string | undefined;
  connecting: Connecting;
  onUpstream: (end: PeerEnd) => void;
  /** What the data path writes to upstreams, as it is written. */
  onWritten: (written: Written) => void;
  connectApp(address: ListenAddress): PeerEnd;
  /** Called at the end of every turn of the event loop. */
  onTurn: () => void;
  /** One turn of the event loop. */
  turn(): Promise<void>;
  /** Resolves when nothing happens any more; rejects when that does not come about. */
  settle(): Promise<void>;
  /** Connections of the data path to the upstream that are open. */
  readonly openUpstream: number;
  close(): Promise<void>;
}

/** A tunnel through an egress proxy (CONNECT, RFC 9110 §9.3.6). */

import { BlockList, isIP, type Socket, type TcpNetConnectOpts } from 'node:net';
import { Duplex } from 'node:stream';
import type { EgressProxyConfig } from '../../config/config.ts';
import { messageOf, systemCodeOf } from '../../platform/errors.ts';
import { readMountedSecret } from '../../platform/mounted/mounted-secret.ts';
import { isLoopbackHost } from '../../platform/net/address.ts';
import type { Clock } from '../../platform/time/clock.ts';

/** Of the proxy's answer to CONNECT. */
const MAX_ANSWER_BYTES = 8192;

/** The message may be shown: it holds no credentials. */
export class EgressFailure extends Error {
  override readonly name = 'EgressFailure' as const;
}

interface EgressTunnelOptions {
  readonly proxy: EgressProxyConfig;
  /** A name or address, IPv6 without brackets. */
  readonly host: string;
  readonly port: number;
  /** From now to the proxy's consent. */
  readonly withinMs: number;
  readonly clock: Clock;
  readonly connectTcp: (options: TcpNetConnectOpts) => Socket;
  readonly onStands?: () => void;
}

const HEAD_END = '\r\n\r\n';

/** RFC 3986 §3.2.2. No character ends a line or a request target. */
const HOST = /^[\w.~!$&'()*+,;=%:-]+$/;

/** Writes wait until it opens. If it fails, its `error` is an EgressFailure. */
export class EgressTunnel extends Duplex {
  readonly #options: EgressTunnelOptions;
  readonly #cancelTimeout: () => void;
  #socket: Socket | undefined;
  #stands = false;
  /** The proxy's answer so far, latin1. */
  #answer = '';
  #waiting: (() => void) | undefined;

  constructor(options: EgressTunnelOptions) {
    super({ allowHalfOpen: true });
    this.#options = options;
    const { clock, withinMs } = options;
    this.#cancelTimeout = clock.after(withinMs, () =>
      this.#fail(`gave no tunnel within ${withinMs / 1000} s`),
    );
    this.#open().catch((error) => this.#fail(`cannot be asked: ${messageOf(error)}`));
  }

  async #open(): Promise<void> {
    const { proxy, connectTcp, host: asked } = this.#options;
    if (!HOST.test(asked)) {
      this.#fail(`is not asked for ${JSON.stringify(asked)}, which is neither a name nor an address`);
      return;
    }
    let authorization = '';
    if (proxy.credentialsDirectory !== undefined) {
      // Anew for each connection, to follow rotation.
      const reading = await readMountedSecret(proxy.credentialsDirectory, ['username', 'password']);
      if (reading.state !== 'loaded') {
        this.#fail(`cannot be asked: ${reading.detail}`);
        return;
      }
      const { username, password } = reading.values;
      authorization = `Proxy-Authorization: Basic ${Buffer.from(`${username}:${password}`).toString('base64')}\r\n`;
    }
    if (this.destroyed) return;
    const { host, port } = proxy;
    const socket = connectTcp({ host, port, noDelay: true, keepAlive: true, allowHalfOpen: true });
    this.#socket = socket;
    socket.once('connect', () => socket.write(this.#request(authorization), 'latin1'));
    socket.on('data', (chunk: Buffer) => this.#read(chunk));
    socket.on('end', () => {
      if (this.#stands) this.push(null);
      else this.#fail('closed the connection without a whole answer to CONNECT');
    });
    socket.on('error', (error) => {
      if (this.#stands) this.destroy(error);
      else this.#fail(`cannot be reached: ${systemCodeOf(error) ?? messageOf(error)}`);
    });
    socket.on('close', () => this.destroy());
  }

  #request(authorization: string): string {
    const { host, port } = this.#options;
    const authority = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
    return `CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n${authorization}\r\n`;
  }

  #read(chunk: Buffer): void {
    if (this.#stands) {
      if (!this.push(chunk)) this.#socket?.pause();
      return;
    }
    if (this.destroyed) return;
    const before = this.#answer.length;
    this.#answer += chunk.toString('latin1');
    // An interim answer decides nothing yet (RFC 9110 §15.2).
    for (;;) {
      const end = this.#answer.indexOf(HEAD_END);
      if (end === -1 || end > MAX_ANSWER_BYTES) break;
      const status = /^HTTP\/1\.[01] ([1-5]\d\d)[ \r]/.exec(this.#answer)?.[1];
      if (status?.startsWith('1')) {
        this.#answer = this.#answer.slice(end + HEAD_END.length);
        continue;
      }
      if (status === undefined) this.#fail('did not answer CONNECT in HTTP/1.1');
      else if (!status.startsWith('2')) this.#fail(`answered CONNECT with ${status}${remedyOf(status)}`);
      else this.#begin(chunk.subarray(chunk.length - (this.#answer.length - end - HEAD_END.length)));
      return;
    }
    if (before + chunk.length > MAX_ANSWER_BYTES) {
      this.#fail(`answered CONNECT with a head of more than ${MAX_ANSWER_BYTES} bytes`);
    }
  }

  /** @param rest what the other end has already sent. */
  #begin(rest: Buffer): void {
    this.#stands = true;
    this.#answer = '';
    this.#cancelTimeout();
    if (rest.length > 0) this.push(Buffer.from(rest));
    this.#options.onStands?.();
    this.#waiting?.();
    this.#waiting = undefined;
  }

  #fail(what: string): void {
    const { host, port } = this.#options.proxy;
    this.destroy(new EgressFailure(`the egress proxy ${host}:${port} ${what}`));
  }

  override _read(): void {
    if (this.#stands) this.#socket?.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    const write = () => {
      this.#socket?.write(chunk, done);
    };
    if (this.#stands) write();
    else this.#waiting = write;
  }

  override _final(done: () => void): void {
    const end = () => {
      this.#socket?.end(done);
    };
    if (this.#stands) end();
    else this.#waiting = end;
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#cancelTimeout();
    this.#socket?.destroy();
    done(error);
  }
}

function remedyOf(status: string): string {
  if (status === '407') return ': check egressProxy.credentialsDir';
  return status === '403' ? ': it does not let this host through' : '';
}

/**
 * Loopback is never proxied. `.suffix` names all names below it. Names are not resolved.
 * @param host as dialled; IPv6 without brackets.
 */
export function goesThrough({ noProxy }: Pick<EgressProxyConfig, 'noProxy'>, host: string): boolean {
  const name = host.toLowerCase().replace(/\.$/, '');
  return !isLoopbackHost(name) && !noProxy.some((entry) => isNamedBy(entry, name));
}

function isNamedBy(entry: string, host: string): boolean {
  const family = isIP(host);
  if (family === 0) return entry.startsWith('.') ? host.endsWith(entry) && host !== entry : host === entry;
  const [address = '', prefix] = entry.split('/');
  if (isIP(address) !== family) return false;
  const type = family === 6 ? 'ipv6' : 'ipv4';
  const list = new BlockList();
  list.addSubnet(address, prefix === undefined ? (family === 6 ? 128 : 32) : Number(prefix), type);
  return list.check(host, type);
}

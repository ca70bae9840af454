import type { Socket } from 'node:net';
import { type SecureContext, TLSSocket } from 'node:tls';
import type { Clock } from '../platform/time/clock.ts';
import { Deadline } from '../proxy/io/deadline.ts';

/** From its beginning to its end. */
export const HANDSHAKE_MS = 10_000;

/** In order of preference (RFC 7301 §3.2). A client that offers neither gets the corresponding alert. */
const PROTOCOLS = ['h2', 'http/1.1'];

export interface TlsHandshakeOptions {
  /** Just accepted. */
  readonly socket: Socket;
  readonly secureContext: SecureContext;
  /** Whether the caller is asked for a certificate, which it may decline. */
  readonly asksForCertificate: boolean;
  readonly clock: Clock;
  /** Its requests follow. Called in the same turn in which the handshake ended. */
  readonly onSecured: (socket: TLSSocket) => void;
  /** The connection has ended, or is ending. */
  readonly onFailed: (result: 'handshake_failed' | 'timeout', why: string) => void;
}

/** The server's side of a handshake with a caller. */
export function beginHandshake({
  socket,
  secureContext,
  asksForCertificate,
  clock,
  onSecured,
  onFailed,
}: TlsHandshakeOptions): void {
  const tls = new TLSSocket(socket, {
    isServer: true,
    secureContext,
    ALPNProtocols: PROTOCOLS,
    requestCert: asksForCertificate,
    // An untrusted caller gets an answer that says so.
    rejectUnauthorized: false,
  });
  let over = false;
  let failure: Error | undefined;
  const deadline = new Deadline(clock, () => fail('timeout', `was not over in ${HANDSHAKE_MS} ms`));
  deadline.set(clock.monotonicMs() + HANDSHAKE_MS);

  function fail(result: 'handshake_failed' | 'timeout', why: string): void {
    if (over) return;
    over = true;
    deadline.dispose();
    tls.destroy();
    socket.destroy();
    onFailed(result, why);
  }

  tls.on('error', (error) => {
    failure ??= error;
    tls.destroy();
  });
  // After the handshake Node reports TLS errors only here, and leaves the socket as it is.
  tls.on('_tlsError', (error: Error) => {
    failure ??= error;
    tls.destroy();
  });
  // An end during the handshake would leave it half-open.
  const onEnd = (): unknown => tls.destroy();
  tls.once('end', onEnd);
  const onClose = (): void =>
    fail(
      'handshake_failed',
      failure === undefined ? 'was given up by the caller' : `failed: ${failure.message}`,
    );
  tls.once('close', onClose);
  // It was displaced, or the program ended.
  socket.once('close', onClose);
  tls.once('secure', () => {
    if (over) return;
    over = true;
    deadline.dispose();
    tls.off('end', onEnd);
    onSecured(tls);
  });
}

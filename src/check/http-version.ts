/** Which versions of HTTP a port speaks. No API is asked: only greetings are sent, and OPTIONS of the server as a whole. */

import type { Socket } from 'node:net';
import { formatAddress } from '../platform/net/address.ts';
import {
  type About,
  type CheckContext,
  type Destination,
  type Finding,
  inTime,
  wordsFor,
} from './check-context.ts';
import { openStream, proxyOnTheWay, REFUSED_BY_ALPN, remedyForNoConnection, secure } from './connection.ts';
import type { StepName } from './steps.ts';

/** A server sends its SETTINGS once it has the preface (RFC 9113 §3.4). */
const GREETING_MS = 2000;

const NOT_HTTP2 = 'ERR_HTTP2_ERROR';

type Answer = 'HTTP/2' | 'another protocol' | { readonly gone: string };

/** For `protocol: h2c`. Undefined if HTTP/2 is spoken with prior knowledge (RFC 9113 §3.3). */
export async function checkClearHttp2(
  to: Destination,
  step: StepName,
  of: About,
  examination: CheckContext,
): Promise<Finding | undefined> {
  const where = `http://${formatAddress(to)}`;
  const route = 'and the route says protocol: h2c';
  let answer: Answer;
  try {
    answer = await greet(to, examination);
  } catch (error) {
    const why = wordsFor(error);
    if (error instanceof NoConnection) {
      return of.failure(step, 'provider_unavailable', `${where}: ${why}`, remedyForNoConnection(why));
    }
    const detail = `${where} says nothing to a greeting of HTTP/2 (${why}), ${route}`;
    const remedy = 'make sure that the port speaks HTTP/2 without TLS, and without an upgrade from HTTP/1.1';
    return of.warning(step, detail, remedy);
  }
  if (answer === 'HTTP/2') return undefined;
  if (answer === 'another protocol') {
    const remedy =
      'name the port on which it does: gRPC needs one; for an upstream of HTTP/1.1 leave protocol out';
    return of.failure(step, 'configuration', `${where} does not speak HTTP/2, ${route}`, remedy);
  }
  const detail = `${where} hangs up on a greeting of HTTP/2 (${answer.gone}), ${route}`;
  return of.warning(step, detail, "look at the upstream's log, and at what stands before it");
}

/** For `auto` and `http1` without TLS: HTTP/1.1 is spoken there. Undefined unless the port takes HTTP/2 alone. */
export async function checkClearHttp1(
  to: Destination,
  step: StepName,
  of: About,
  examination: CheckContext,
): Promise<Finding | undefined> {
  try {
    if ((await greet(to, examination)) !== 'HTTP/2') return undefined;
    const stream = await openStream(to, undefined, examination);
    if (await takesHttp1(stream, to, examination)) return undefined;
  } catch {
    return undefined;
  }
  const detail = `http://${formatAddress(to)} speaks HTTP/2 alone, as gRPC servers do, and the route speaks HTTP/1.1 to it`;
  return of.failure(step, 'configuration', detail, 'set protocol: h2c');
}

/**
 * For `auto` over TLS, where HTTP/2 was chosen. The sidecar sends what comes by HTTP/1.1 by HTTP/1.1.
 * - `refused`: HTTP/1.1 is refused by ALPN. The sidecar then uses HTTP/2, and loses no request.
 * - `cut`: the connection is made and then ends, which costs the first request.
 */
export async function http1OverTls(
  to: Destination,
  examination: CheckContext,
): Promise<'taken' | 'refused' | 'cut'> {
  let stream: Socket | undefined;
  try {
    stream = await openStream(to, await proxyOnTheWay(to), examination);
    const socket = await secure({ ...to, offers: ['http/1.1'] }, stream, 'the trusted', examination);
    if (socket.alpnProtocol === 'http/1.1') {
      socket.destroy();
      return 'taken';
    }
    return (await takesHttp1(socket, to, examination)) ? 'taken' : 'cut';
  } catch (error) {
    return REFUSED_BY_ALPN.test(wordsFor(error)) ? 'refused' : 'taken';
  } finally {
    stream?.destroy();
  }
}

class NoConnection extends Error {}

/** @throws {NoConnection}, and {TooLate} if no answer comes in time. */
async function greet(to: Destination, examination: CheckContext): Promise<Answer> {
  let stream: Socket;
  try {
    stream = await openStream(to, undefined, examination);
  } catch (error) {
    throw new NoConnection(wordsFor(error));
  }
  const http2 = process.getBuiltinModule('node:http2');
  const answered = Promise.withResolvers<Answer>();
  const session = http2.connect(`http://${formatAddress(to)}`, { createConnection: () => stream });
  session.once('remoteSettings', () => answered.resolve('HTTP/2'));
  session.on('error', (error) => {
    const why = wordsFor(error);
    answered.resolve(why === NOT_HTTP2 ? 'another protocol' : { gone: why });
  });
  session.on('close', () => answered.resolve({ gone: 'without a word' }));
  try {
    return await inTime(answered.promise, examination, Math.min(GREETING_MS, to.withinMs));
  } finally {
    session.destroy();
    stream.destroy();
  }
}

const MAX_ANSWER_LENGTH = 16 * 1024;

/** Kestrel says this by HTTP/1.1. */
const HTTP2_ONLY = /HTTP\/2 only/i;

/**
 * By OPTIONS * (RFC 9110 §9.3.7), which asks for no resource. False if the server hangs up or answers by HTTP/2.
 * Ends the connection.
 */
async function takesHttp1(stream: Socket, to: Destination, examination: CheckContext): Promise<boolean> {
  const ended = Promise.withResolvers<void>();
  let said = '';
  stream.on('data', (chunk: Buffer) => {
    said += chunk.toString('latin1');
    if (said.length > MAX_ANSWER_LENGTH) ended.resolve();
  });
  stream.on('error', () => ended.resolve());
  stream.on('close', () => ended.resolve());
  stream.on('end', () => ended.resolve());
  stream.write(`OPTIONS * HTTP/1.1\r\nHost: ${formatAddress(to)}\r\nConnection: close\r\n\r\n`);
  try {
    await inTime(ended.promise, examination, Math.min(GREETING_MS, to.withinMs));
  } catch {
    // Silence is no refusal.
    if (said === '') return true;
  } finally {
    stream.destroy();
  }
  return said.startsWith('HTTP/1.') && !HTTP2_ONLY.test(said);
}

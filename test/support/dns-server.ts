/** A name server of the tests' own (RFC 1035), over UDP on loopback, and over TCP where answers are too long for that. */

import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { type AddressInfo, createServer, isIPv4 } from 'node:net';
import { onTestFinished } from 'vitest';
import { freePort } from './free-port.ts';

/** What there is of a name; a name that is not there is NXDOMAIN. */
export interface DnsRecords {
  /** IPv4 and IPv6. */
  readonly addresses?: readonly string[];
  /** Another name, whose addresses are answered with it, as by servers that recurse. */
  readonly cname?: string;
  /** Seconds. */
  readonly ttl?: number;
  /** The one type of question that `rcode` or `silent` is for; undefined for all. */
  readonly only?: 'A' | 'AAAA';
  /** In place of an answer. */
  readonly rcode?: 'SERVFAIL' | 'REFUSED';
  /** Questions about it are not answered at all. */
  readonly silent?: boolean;
  /** Over UDP the answer is told to be longer than that (RFC 2181 §9): it is given over TCP. Of one that is there from the beginning. */
  readonly truncated?: boolean;
}

export interface DnsServer {
  readonly port: number;
  /** By name in lower case; may be changed. */
  readonly records: Map<string, DnsRecords>;
  /** What was asked, as `A api.example.com`, in the order it came. */
  readonly asked: string[];
  close(): void;
}

const TYPES: Readonly<Record<number, string>> = { 1: 'A', 28: 'AAAA' };
const RCODES = { SERVFAIL: 2, REFUSED: 5 } as const;
const NXDOMAIN = 3;
const CNAME = 5;

/** Started as by a program; a test closes it by `startDnsServer`. */
export async function openDnsServer(
  records: Readonly<Record<string, DnsRecords>>,
  { port = 0, host = '127.0.0.1' } = {},
): Promise<DnsServer> {
  const all = new Map(Object.entries(records));
  const asked: string[] = [];
  const overTcp = [...all.values()].some(({ truncated }) => truncated === true)
    ? await openOverTcp(port, host, all, asked)
    : undefined;
  const socket = createSocket('udp4');
  socket.on('message', (query, { address, port: from }) => {
    const { name, type, end } = questionOf(query);
    asked.push(`${TYPES[type] ?? type} ${name}`);
    const found = all.get(name);
    const fails = found?.only === undefined || found.only === TYPES[type];
    if (found?.silent === true && fails) return;
    const rcode = fails ? found?.rcode : undefined;
    const answer = answerTo(query.subarray(0, end), name, type, rcode, all);
    socket.send(found?.truncated === true ? truncatedTo(answer, end) : answer, from, address);
  });
  socket.bind(overTcp?.port ?? port, host);
  const close = () => {
    socket.close();
    overTcp?.close();
  };
  await once(socket, 'listening').catch((error: unknown) => {
    close();
    throw error;
  });
  return { port: socket.address().port, records: all, asked, close };
}

/** RFC 7766: each message behind its length. */
async function openOverTcp(
  port: number,
  host: string,
  all: ReadonlyMap<string, DnsRecords>,
  asked: string[],
): Promise<{ readonly port: number; close(): void }> {
  const server = createServer((socket) => {
    let octets: Buffer = Buffer.alloc(0);
    socket.on('error', () => {});
    socket.on('data', (chunk: Buffer) => {
      octets = Buffer.concat([octets, chunk]);
      while (octets.length >= 2 && octets.length >= 2 + octets.readUInt16BE(0)) {
        const query = octets.subarray(2, 2 + octets.readUInt16BE(0));
        octets = octets.subarray(2 + query.length);
        const { name, type, end } = questionOf(query);
        asked.push(`${TYPES[type] ?? type} ${name} over TCP`);
        const answer = answerTo(query.subarray(0, end), name, type, undefined, all);
        const length = Buffer.alloc(2);
        length.writeUInt16BE(answer.length);
        socket.write(Buffer.concat([length, answer]));
      }
    });
  });
  // Below the ports that the system gives away: another socket may have one of those over UDP.
  server.listen(port === 0 ? await freePort() : port, host);
  await once(server, 'listening');
  return { port: (server.address() as AddressInfo).port, close: () => server.close() };
}

export async function startDnsServer(records: Readonly<Record<string, DnsRecords>>): Promise<DnsServer> {
  const server = await openDnsServer(records);
  onTestFinished(() => server.close());
  return server;
}

/** Its header and question alone, with TC. */
function truncatedTo(answer: Buffer, end: number): Buffer {
  const short = Buffer.from(answer.subarray(0, end));
  short.writeUInt16BE(short.readUInt16BE(2) | 0x200, 2);
  short.writeUInt16BE(0, 6);
  return short;
}

function questionOf(query: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = query[at] as number; length > 0; length = query[at] as number) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join('.').toLowerCase(), type: query.readUInt16BE(at + 1), end: at + 5 };
}

function answerTo(
  question: Buffer,
  name: string,
  type: number,
  failure: DnsRecords['rcode'],
  records: ReadonlyMap<string, DnsRecords>,
): Buffer {
  const found = records.get(name);
  const answers: Buffer[] = [];
  let owner = name;
  let current = found;
  while (current?.cname !== undefined) {
    answers.push(record(owner, CNAME, current.ttl ?? 60, encodedName(current.cname)));
    owner = current.cname;
    current = records.get(owner);
  }
  const wanted = (current?.addresses ?? []).filter((address) => isIPv4(address) === (type === 1));
  if (TYPES[type] !== undefined)
    for (const address of wanted) answers.push(record(owner, type, current?.ttl ?? 60, octetsOf(address)));
  const header = Buffer.from(question.subarray(0, 12));
  const rcode = found === undefined ? NXDOMAIN : failure === undefined ? 0 : RCODES[failure];
  // An answer, with recursion.
  header.writeUInt16BE(0x8180 | rcode, 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(failure === undefined ? answers.length : 0, 6);
  header.writeUInt32BE(0, 8);
  return Buffer.concat([header, question.subarray(12), ...(failure === undefined ? answers : [])]);
}

function record(owner: string, type: number, ttl: number, data: Buffer): Buffer {
  const fixed = Buffer.alloc(10);
  fixed.writeUInt16BE(type, 0);
  fixed.writeUInt16BE(1, 2);
  fixed.writeUInt32BE(ttl, 4);
  fixed.writeUInt16BE(data.length, 8);
  return Buffer.concat([encodedName(owner), fixed, data]);
}

function encodedName(name: string): Buffer {
  const labels = name
    .split('.')
    .map((label) => Buffer.from(`${String.fromCharCode(label.length)}${label}`, 'latin1'));
  return Buffer.concat([...labels, Buffer.from([0])]);
}

function octetsOf(address: string): Buffer {
  if (isIPv4(address)) return Buffer.from(address.split('.').map(Number));
  const [head = '', tail] = address.split('::');
  const groups = (text: string): number[] =>
    text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16));
  const front = groups(head);
  const back = tail === undefined ? [] : groups(tail);
  const all = [...front, ...new Array(8 - front.length - back.length).fill(0), ...back];
  const octets = Buffer.alloc(16);
  all.forEach((group, index) => {
    octets.writeUInt16BE(group, index * 2);
  });
  return octets;
}

import type { Step, Walk } from './walk.ts';

/** Walks that something went wrong on, by what it was. */
export const KNOWN_WALKS: Readonly<Record<string, Walk>> = {
  'a POST is sent again on the connection of the 401 that the upstream has ended since': walk(
    'plain',
    'by the walk',
    [
      { do: 'app opens', pace: 'settled' },
      asks('POST', 'length', 0),
      answers(401, 'ends'),
      { do: 'token is granted', lifetimeMs: 60_000, pace: 'settled' },
    ],
  ),
  'a pipelined POST is sent on the connection of the 401 before it that the upstream has ended since': walk(
    'plain',
    'by the walk',
    [
      { do: 'app opens', pace: 'settled' },
      asks('GET', 'none', 0),
      asks('POST', 'length', 7),
      answers(401, 'ends'),
      { do: 'token is refused', pace: 'settled' },
    ],
  ),
  'a pipelined PUT is sent on a connection that the upstream had ended when a slow app took the last answer':
    walk('plain', 'by the walk', [
      { do: 'app opens', pace: 'settled' },
      asks('GET', 'none', 0),
      asks('PUT', 'chunked', 40_000),
      { do: 'app stops reading', app: 0, pace: 'settled' },
      { ...answers(200, 'ends'), bytes: 80_000 },
    ]),
  'a pipelined body is lost while its request waits for a token, once the 401 before it is passed on': walk(
    'plain',
    'by the walk',
    [
      { do: 'app opens', pace: 'settled' },
      asks('GET', 'none', 0),
      asks('PATCH', 'chunked', 40_000),
      answers(401, 'stays'),
      { do: 'token ends', pace: 'settled' },
      { do: 'token is refused', pace: 'settled' },
    ],
  ),
  'a pipelined request gets the answer of the next one, where the end of the stream ends a held 401': walk(
    'tls',
    'by the walk',
    [
      { do: 'app opens', pace: 'settled' },
      asks('GET', 'none', 0),
      answers(401, 'ends'),
      asks('GET', 'none', 0),
      { do: 'token is refused', pace: 'settled' },
    ],
  ),
  'an answer that had come is 504 after the process was suspended': walk('tls', 'by the walk', [
    { do: 'app opens', pace: 'settled' },
    asks('GET', 'none', 0),
    { ...answers(200, 'stays'), pace: 'same turn' },
    { do: 'process is suspended', monotonicMs: 12_000, wallMs: 61_000, timersFirst: true, pace: 'settled' },
  ]),
  'a request comes on a connection that was idle for too long while the process was suspended, its answer unread':
    walk('plain', 'by the walk', [
      { do: 'app opens', pace: 'settled' },
      asks('GET', 'none', 0),
      { ...answers(200, 'stays'), pace: 'same turn' },
      { do: 'process is suspended', monotonicMs: 61_000, wallMs: 0, timersFirst: true, pace: 'next turn' },
      asks('GET', 'none', 0),
    ]),
  'a token ends while the connection is being made': walk('tls', 'by the walk', [
    { do: 'app opens', pace: 'settled' },
    { do: 'connections', are: 'held', pace: 'settled' },
    asks('GET', 'none', 0),
    { do: 'token ends', pace: 'settled' },
    { do: 'connections', are: 'made', pace: 'settled' },
  ]),
};

function walk(transport: Walk['transport'], renewal: Walk['renewal'], steps: readonly Step[]): Walk {
  return { transport, app: 'http/1.1', upstream: 'http/1.1', renewal, steps };
}

function asks(
  method: 'GET' | 'PATCH' | 'POST' | 'PUT',
  body: 'chunked' | 'length' | 'none',
  bytes: number,
): Step {
  return {
    do: 'app asks',
    app: 0,
    method,
    body,
    bytes,
    version: '1.1',
    closes: false,
    stops: 'whole',
    grpc: false,
    pace: 'settled',
  };
}

function answers(status: 200 | 401, afterwards: 'ends' | 'stays'): Extract<Step, { do: 'upstream answers' }> {
  return {
    do: 'upstream answers',
    upstream: 0,
    status,
    framing: 'length',
    bytes: 0,
    closes: false,
    keepAlive: undefined,
    stops: 'whole',
    afterwards,
    pace: 'settled',
  };
}

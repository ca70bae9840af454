import { access, constants, open, opendir, realpath, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { CredentialConfig } from '../config/config.ts';
import { nearestName } from '../config/suggestion.ts';
import { messageOf, systemCodeOf } from '../platform/errors.ts';
import { redactedValue } from '../platform/log/redacted-text.ts';
import { type InvalidSecret, readMountedSecret } from '../platform/mounted/mounted-secret.ts';
import { credentialFiles } from '../token/credentials.ts';
import type { About, Finding } from './check-context.ts';

const OTHER_NAMES: Readonly<Record<string, readonly string[]>> = {
  client_id: ['id', 'username', 'user', 'appid', 'application_id', 'key_id'],
  client_secret: ['secret', 'password', 'clientsecret', 'key', 'secret_value'],
  'tls.crt': ['cert.pem', 'client.crt', 'cert', 'certificate', 'tls.pem'],
  'tls.key': ['key.pem', 'client.key', 'key', 'private.key'],
};

const MAX_ENTRIES = 1000;
const MAX_KEYS_SHOWN = 8;

/** At least one finding. */
export async function checkMountedFiles(config: CredentialConfig, of: About): Promise<Finding[]> {
  const { directory } = config;
  const names = credentialFiles(config);
  if (names.length === 0) return [of.ok('mounted_secret', 'nothing has to be mounted')];
  const entries = await entriesOf(directory);
  const findings = (await Promise.all(names.map((name) => checkFile(directory, name, entries, of)))).flat();
  if (entries === undefined) return findings.slice(0, 1);
  return findings.length > 0 ? findings : [of.ok('mounted_secret', directory)];
}

/** Writes nothing: a sidecar may have its token there. */
export async function checkTokenFile({ output }: CredentialConfig, of: About): Promise<Finding[]> {
  if (output?.file === undefined) return [];
  const { path } = output.file;
  const directory = dirname(path);
  try {
    await access(directory, constants.W_OK | constants.X_OK);
    return [of.ok('token_file', path)];
  } catch (error) {
    const what = `${path} cannot be written: ${systemCodeOf(error) ?? messageOf(error)} of ${directory}`;
    return [
      of.failure('token_file', 'configuration', what, `mount a volume at ${directory} that may be written`),
    ];
  }
}

async function checkFile(
  directory: string,
  name: string,
  entries: readonly string[] | undefined,
  of: About,
): Promise<Finding[]> {
  const reading = await readMountedSecret(directory, [name]);
  if (reading.state !== 'loaded') {
    const nor = entries === undefined ? ', nor does the directory' : '';
    const detail = reading.state === 'missing' ? `${reading.detail}${nor}` : reading.detail;
    return [
      of.failure('mounted_secret', 'configuration', detail, remedyFor(reading, name, directory, entries)),
    ];
  }
  const path = join(directory, name);
  const value = reading.values[name] as string;
  const oddities = [...(isText(name) ? odditiesOf(value) : []), ...(await odditiesOfFile(path))];
  return oddities.map(({ what, remedy }) => of.warning('mounted_secret', `${path} ${what}`, remedy));
}

function remedyFor(
  { state }: InvalidSecret,
  name: string,
  directory: string,
  entries: readonly string[] | undefined,
): string {
  switch (state) {
    case 'missing': {
      if (entries === undefined) return `mount the Secret at ${directory}, or name the directory where it is`;
      const near = nearName(name, entries);
      if (near !== undefined) return `there is ${near}: the key must be ${name}`;
      const keys = entries.slice(0, MAX_KEYS_SHOWN).map((entry) => redactedValue(entry) ?? '…');
      const has = keys.length === 0 ? 'it has none' : `it has ${keys.join(', ')}`;
      return `the Secret must have the key ${name}; ${has}`;
    }
    case 'empty':
      return `put a value under the key ${name} of the Secret`;
    case 'unreadable':
      return `let user ${process.getuid?.() ?? 65_532} read it: defaultMode of the volume, or fsGroup of the pod`;
    case 'oversized':
      return 'check that the right file is mounted';
    case 'malformed':
      return `put what is expected under the key ${name} of the Secret`;
  }
}

async function entriesOf(directory: string): Promise<readonly string[] | undefined> {
  const entries: string[] = [];
  try {
    for await (const { name } of await opendir(directory)) {
      if (KEY.test(name) && !name.startsWith('..')) entries.push(name);
      if (entries.length === MAX_ENTRIES) break;
    }
  } catch {
    return undefined;
  }
  return entries.sort();
}

export function nearName(name: string, entries: readonly string[]): string | undefined {
  const others = entries.filter((entry) => entry !== name);
  const [wanted, known] = [plain(name), (OTHER_NAMES[name] ?? []).map(plain)];
  const found =
    others.find((entry) => plain(entry) === wanted) ??
    others.find((entry) => plain(entry).replace(/(?:txt|json|b64|base64)$/, '') === wanted) ??
    others.find((entry) => known.includes(plain(entry))) ??
    nearestName(name, others);
  // Another file's own name cannot have been meant.
  return found === undefined || Object.hasOwn(OTHER_NAMES, found)
    ? undefined
    : (redactedValue(found) ?? undefined);
}

const KEY = /^[-._a-zA-Z0-9]{1,253}$/;

function plain(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, '');
}

function isText(name: string): boolean {
  return name === 'client_id' || name === 'client_secret';
}

interface Oddity {
  /** Without the value. */
  readonly what: string;
  readonly remedy: string;
}

function odditiesOf(value: string): Oddity[] {
  const again = 'write the Secret again without it: kubectl create secret generic --from-literal';
  if (/[\r\n]/.test(value)) return [{ what: 'has more than one line', remedy: again }];
  if (value.startsWith('\uFEFF')) return [{ what: 'begins with a byte order mark (U+FEFF)', remedy: again }];
  if (/^\s|\s$/.test(value)) return [{ what: 'begins or ends with white space', remedy: again }];
  if (/^(["']).*\1$/.test(value))
    return [{ what: 'stands in quotes, which are a part of it', remedy: again }];
  if (/^(?:<.*>|\$\{?\w+\}?|\{\{.*\}\}|(?:change|replace)[-_ ]?me|todo|x{3,})$/i.test(value)) {
    return [{ what: 'looks like a placeholder', remedy: 'put the real value into the Secret' }];
  }
  return [];
}

async function odditiesOfFile(path: string): Promise<Oddity[]> {
  const { mode } = await stat(path).catch(() => ({ mode: 0 }));
  return [
    ...((mode & 0o002) === 0
      ? []
      : [
          {
            what: 'may be written by everybody',
            remedy: 'take the permission away: chmod o-w, or defaultMode',
          },
        ]),
    ...((await isMountPoint(path))
      ? [
          {
            what: 'is mounted by subPath: it never changes while the pod runs',
            remedy: 'mount the whole Secret as a directory, so that rotation reaches it',
          },
        ]
      : []),
  ];
}

const MAX_MOUNT_BYTES = 1024 * 1024;

/** By proc(5), which lists real names, not links (`/var/run`). */
async function isMountPoint(path: string): Promise<boolean> {
  try {
    const own = join(await realpath(dirname(path)), basename(path));
    const file = await open('/proc/self/mountinfo');
    try {
      const { buffer, bytesRead } = await readAll(file);
      const points = buffer
        .toString('utf8', 0, bytesRead)
        .split('\n')
        .map((line) => line.split(' ')[4]);
      return points.includes(own);
    } finally {
      await file.close();
    }
  } catch {
    return false;
  }
}

async function readAll(
  file: Awaited<ReturnType<typeof open>>,
): Promise<{ buffer: Buffer; bytesRead: number }> {
  const buffer = Buffer.alloc(MAX_MOUNT_BYTES);
  let bytesRead = 0;
  for (;;) {
    const piece = await file.read(buffer, bytesRead, buffer.length - bytesRead, null);
    bytesRead += piece.bytesRead;
    if (piece.bytesRead === 0) return { buffer, bytesRead };
  }
}

/**
 * The registered clients as mounted Secrets, one subdirectory per client: `client_id`, `client_secret` or
 * `secret_hash`, and optionally a second secret, `scope`, `audience` and `token_lifetime`.
 */

import { readdir, realpath, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf, systemCodeOf } from '../platform/errors.ts';
import { type MountedSecret, readMountedSecret } from '../platform/mounted/mounted-secret.ts';
import { ConfigurationError, type Problem } from '../platform/problems.ts';
import { type Client, type ClientField, defineClient, sha256 } from './client.ts';
import { createClientSet } from './client-store.ts';
import type { ClientsReading } from './clients-reading.ts';

const FILE_OF: Readonly<Record<ClientField, string>> = {
  clientId: 'client_id',
  clientSecret: 'client_secret',
  secretHash: 'secret_hash',
  secondClientSecret: 'second_client_secret',
  secondSecretHash: 'second_secret_hash',
  scopes: 'scope',
  audience: 'audience',
  tokenLifetime: 'token_lifetime',
};

/** How often to read a directory that changes while being read. */
const TRIES = 3;

/** @param key names the directory in messages: the flag or variable that gave it. */
export async function readClientsDirectory(root: string, key: string): Promise<ClientsReading> {
  for (let tries = 1; ; tries += 1) {
    const names = await namesIn(root);
    const reading = await readOnce(root, key);
    const failed = 'problems' in reading.outcome;
    // A client that was added or removed during the reading is no fault of the directory's.
    if (!failed || tries === TRIES || names === (await namesIn(root))) return reading;
  }
}

/** The names in it; empty if it cannot be read, which the reading itself reports. */
async function namesIn(root: string): Promise<string> {
  return readdir(root).then(
    (names) => names.sort().join('\0'),
    () => '',
  );
}

async function readOnce(root: string, key: string): Promise<ClientsReading> {
  const directories = [root];
  const problems: Problem[] = [];
  const clients: Client[] = [];
  const places: string[] = [];
  let content = '';
  try {
    for (const name of (await readdir(root)).sort()) {
      // `..data` and its target belong to the kubelet; other dot files are ignored.
      if (name.startsWith('.')) continue;
      const directory = join(root, name);
      directories.push(directory);
      const reading = await readClient(directory, problems);
      if (reading === undefined) continue;
      content += reading.content;
      if (reading.client === undefined) continue;
      clients.push(reading.client);
      places.push(join(directory, FILE_OF.clientId));
    }
  } catch (error) {
    const cause = systemCodeOf(error) ?? messageOf(error);
    problems.push({ key, value: root, expected: `a readable directory (${cause})` });
  }
  const digest = sha256(JSON.stringify([content, problems])).toString('base64');
  if (problems.length > 0) return { outcome: { problems }, digest, directories };
  try {
    const set = createClientSet(clients, (index) => places[index] ?? root);
    return { outcome: { clients: set }, digest, directories };
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    return { outcome: { problems: error.problems }, digest, directories };
  }
}

async function readClient(
  directory: string,
  problems: Problem[],
): Promise<{ readonly client: Client | undefined; readonly content: string } | undefined> {
  if (!(await stat(directory)).isDirectory()) {
    problems.push({ key: directory, expected: 'a directory with the files of one client' });
    return undefined;
  }
  const secret = await readFiles(directory);
  if (secret.state !== 'loaded') {
    problems.push({ key: directory, expected: `the files of a client, but ${secret.detail}` });
    return undefined;
  }
  const text = (field: ClientField): string | undefined => secret.values[FILE_OF[field]];
  const client = defineClient(
    {
      clientId: text('clientId'),
      clientSecret: text('clientSecret'),
      secretHash: text('secretHash'),
      secondClientSecret: text('secondClientSecret'),
      secondSecretHash: text('secondSecretHash'),
      scopes: words(text('scopes')),
      audience: words(text('audience')),
      tokenLifetime: text('tokenLifetime'),
    },
    (field) => join(directory, FILE_OF[field]),
    problems,
  );
  return { client, content: JSON.stringify([directory, secret.values]) };
}

/** The existing files, all of one version of the Secret. */
async function readFiles(directory: string): Promise<MountedSecret> {
  const version = await currentVersion(directory);
  const present = await readdir(version).catch((): string[] => []);
  const names = Object.values(FILE_OF).filter((name) => present.includes(name) || name === FILE_OF.clientId);
  const secret = await readMountedSecret(version, names);
  // The kubelet removes a version, file by file, as soon as it has swapped in the next: then that one is read.
  return (await currentVersion(directory)) === version ? secret : await readFiles(directory);
}

/**
 * Where the files of one version of the Secret are. The directory may have its own `..data`, or be a link through that
 * of the volume it is projected into; either way all files come from one version.
 */
async function currentVersion(directory: string): Promise<string> {
  const place = await realpath(directory);
  return await realpath(join(place, '..data')).catch(() => place);
}

/** Values separated by spaces or line ends, like `scope` in the grant. */
function words(text: string | undefined): readonly string[] | undefined {
  return text?.split(/\s+/).filter((word) => word !== '');
}

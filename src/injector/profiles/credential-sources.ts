/** What is mounted for a credential: of its Secret, only the files that its client and its grant read. */

import type { CredentialConfig } from '../../config/config.ts';
import type { Problem } from '../../platform/problems.ts';
import type { OwnedCredential } from './profile-entries.ts';

/** Names of the files that a credential's client and grant read. */
export type FilesOf = (config: CredentialConfig) => readonly string[];

/** The name that `kubernetes_jwt` expects. */
const TOKEN_FILE = 'token';

/** Sources of a projected volume. @param config the resolved credential. */
export function credentialSources(
  { key, secret, serviceAccountToken }: OwnedCredential,
  config: CredentialConfig,
  filesOf: FilesOf,
  problems: Problem[],
): readonly object[] {
  const needed = filesOf(config);
  const all = needed.join(', ') || 'none';
  const token = serviceAccountToken && {
    ...serviceAccountToken,
    file: serviceAccountToken.file ?? TOKEN_FILE,
  };
  if (token !== undefined && !needed.includes(token.file)) {
    const expected = `a file that is read, and of these there are: ${all}`;
    problems.push({ key: `${key}.serviceAccountToken.file`, value: token.file, expected });
  }
  const { keys = {} } = secret ?? {};
  for (const file of Object.keys(keys)) {
    if (needed.includes(file) && file !== token?.file) continue;
    const expected = `a file that is read of the Secret, and of these there are: ${all}`;
    problems.push({ key: `${key}.secret.keys.${file}`, expected });
  }
  const files = needed.filter((file) => file !== token?.file);
  if (secret === undefined && files.length > 0) {
    problems.push({ key: `${key}.secret`, expected: `the Secret with ${files.join(', ')}` });
  }
  if (secret !== undefined && files.length === 0) {
    const expected = 'nothing, as no file of it is read';
    problems.push({ key: `${key}.secret`, value: secret.name, expected });
  }
  return [
    ...(secret === undefined
      ? []
      : [
          {
            secret: {
              name: secret.name,
              optional: false,
              items: files.map((file) => ({ key: keyOf(keys, file), path: file })),
            },
          },
        ]),
    ...(token === undefined
      ? []
      : [
          {
            serviceAccountToken: {
              audience: token.audience,
              expirationSeconds: token.expirationSeconds ?? 3600,
              path: token.file,
            },
          },
        ]),
  ];
}

function keyOf(keys: Readonly<Record<string, string>>, file: string): string {
  return Object.hasOwn(keys, file) ? (keys[file] as string) : file;
}

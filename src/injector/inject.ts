import { createReadStream } from 'node:fs';
import type { Command, CommandContext } from '../config/command.ts';
import {
  type GivenValue,
  readSettings,
  readValue,
  type Settings,
  unknownVariables,
} from '../config/settings.ts';
import type { ValueFormat } from '../config/values.ts';
import { messageOf, SidecarError, systemCodeOf } from '../platform/errors.ts';
import { ConfigurationError, type Problem } from '../platform/problems.ts';
import { readBroker, readBrokerOfPods } from './broker-of-pods.ts';
import { INJECTION_SETTINGS, readInjectionDefaults } from './injection-defaults.ts';
import { injectManifests, readManifestDocuments } from './manifests/inject-manifests.ts';
import { ANNOTATION, objectName } from './pod/annotations.ts';
import type { ClusterVersion } from './pod/cluster.ts';

const SETTINGS = {
  filename: {
    argument: 'FILE',
    letter: 'f',
    description: 'Manifests, YAML or JSON; - is standard input',
    default: '-',
  },
  'kubernetes-version': {
    argument: 'VERSION',
    description: 'Version of the cluster that the manifests are for, such as 1.30',
    default: 'one with native sidecars',
  },
  namespace: {
    argument: 'NAME',
    description: 'Namespace of objects that name none',
    default: 'default',
  },
  profiles: {
    argument: 'FILES',
    description:
      'Manifests, by commas, with the TokenProfiles and ClusterTokenProfiles that pods name; those among the manifests themselves are known anyway',
    default: 'none',
  },
  ...INJECTION_SETTINGS,
} as const satisfies Settings;

const MAX_MANIFEST_BYTES = 64 * 1024 * 1024;

const clusterVersion: ValueFormat<ClusterVersion> = {
  expected: 'a version such as 1.30',
  parse(text) {
    const [, major, minor] = /^v?(\d{1,3})\.(\d{1,3})(?:\.\d+)?$/.exec(text) ?? [];
    return major === undefined ? undefined : { major: Number(major), minor: Number(minor) };
  },
};

export const inject: Command = {
  summary: 'Print manifests with the sidecar added, as the injector would add it to their pods',
  operands: '[-f FILE]',
  settings: SETTINGS,
  examples: [
    ['kustomize build . | token-sidecar inject | kubectl apply -f -', 'in a pipe'],
    [
      'token-sidecar inject -f deployment.yaml --kubernetes-version 1.28',
      'for a cluster without native sidecars',
    ],
  ],
  async run(context) {
    const { given, positionals } = readSettings(SETTINGS, context.args, context.env);
    if (positionals.length > 0)
      throw new SidecarError('usage', `inject takes no operand: write -f ${positionals[0]}`);
    const problems: Problem[] = unknownVariables(SETTINGS, context.env);
    const own = readInjectionDefaults(given, problems);
    const broker = readBrokerOfPods(given, problems);
    const version = readValue(given['kubernetes-version'], clusterVersion, problems);
    const namespace = readValue(given.namespace, objectName, problems) ?? 'default';
    if (problems.length > 0) throw new ConfigurationError(problems);

    const file = given.filename?.text ?? '-';
    const text = await readManifests('--filename', file, context);
    const cluster = version === undefined ? {} : { version };
    const profiles = await readProfiles(given.profiles, text, namespace, context);
    const defaults = broker === undefined ? own : { ...own, broker: await readBroker(broker) };
    const injected = injectManifests(text, { defaults, cluster, namespace, ...profiles });
    if (injected.problems.length > 0) throw new SidecarError('configuration', injected.problems.join('\n'));
    context.stdout.write(injected.text);
    for (const note of injected.notes) context.stderr.write(`${note}\n`);
    return 0;
  },
};

/** @throws {SidecarError} `configuration` if a file of profiles cannot be read, or is no YAML. */
async function readProfiles(
  given: GivenValue | undefined,
  text: string,
  namespace: string,
  context: CommandContext,
): Promise<Pick<Parameters<typeof injectManifests>[1], 'profilesIn'>> {
  if (given === undefined && !text.includes(ANNOTATION.profile)) return {};
  const files = given === undefined ? [] : given.text.split(',').map((file) => file.trim());
  const contents: unknown[] = [];
  for (const file of files) {
    const read = readManifestDocuments(await readManifests(given?.key ?? '', file, context));
    if (read.problems.length > 0) {
      const message = `${given?.key}: ${file}: expected manifests in YAML or JSON: ${read.problems.join('\n')}`;
      throw new SidecarError('configuration', message);
    }
    contents.push(...read.contents);
  }
  // The rules of the configuration file are slow to load.
  const { profilesInManifests } = await import('./profile-rules.ts');
  return { profilesIn: (manifests) => profilesInManifests([...contents, ...manifests], namespace) };
}

/** @throws {SidecarError} `configuration` if the file cannot be read or is too large. */
async function readManifests(key: string, file: string, { stdin }: CommandContext): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    // The file may be a pipe, as in `-f <(kustomize build)`.
    for await (const chunk of file === '-' ? stdin : createReadStream(file)) {
      chunks.push(chunk as Buffer);
      bytes += (chunk as Buffer).length;
      if (bytes > MAX_MANIFEST_BYTES) throw new Error(`it is larger than ${MAX_MANIFEST_BYTES} bytes`);
    }
  } catch (error) {
    const why = systemCodeOf(error) ?? messageOf(error);
    throw new SidecarError('configuration', `${key}: ${file} cannot be read: ${why}`, { cause: error });
  }
  return Buffer.concat(chunks).toString('utf8');
}

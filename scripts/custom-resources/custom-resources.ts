/** The definitions of TokenProfile and ClusterTokenProfile, by the schema that the injector judges them by. */

import { toJsonSchema } from '@valibot/to-json-schema';
import type { GenericSchema } from 'valibot';
import { stringify } from 'yaml';
import { clusterProfileSchema, profileSchema } from '../../src/injector/profiles/profile-schema.ts';
import { SPEC_DESCRIPTIONS } from './descriptions.ts';
import {
  AUTHORITIES_RULES,
  BROKER_RULES,
  CREDENTIAL_RULES,
  EGRESS_PROXY_RULES,
  EXPRESSION_RULES,
  NO_BROKER_RULES,
  OBJECT_RULES,
  OUTPUT_RULES,
  SERVICE_ACCOUNTS_RULES,
  SPEC_RULES,
} from './rules.ts';
import { type JsonSchema, type StructuralSchema, structuralSchema } from './structural-schema.ts';

interface Kind {
  readonly kind: string;
  readonly plural: string;
  readonly shortName: string;
  readonly scope: 'Namespaced' | 'Cluster';
  readonly description: string;
  readonly spec: GenericSchema;
}

const KINDS: readonly Kind[] = [
  {
    kind: 'TokenProfile',
    plural: 'tokenprofiles',
    shortName: 'tp',
    scope: 'Namespaced',
    description:
      'Credentials, and what they are for, that pods of its namespace name by the annotation token-sidecar.dev/profile.',
    spec: profileSchema,
  },
  {
    kind: 'ClusterTokenProfile',
    plural: 'clustertokenprofiles',
    shortName: 'ctp',
    scope: 'Cluster',
    description:
      'Credentials, and what they are for, that pods of the namespaces which it admits name by the annotation token-sidecar.dev/profile. Secrets and ConfigMaps are looked for where the pod is.',
    spec: clusterProfileSchema,
  },
];

const GROUP = 'token-sidecar.dev';

/** YAML, by the name of its file. */
export function customResourceDefinitions(): Readonly<Record<string, string>> {
  return Object.fromEntries(
    KINDS.map((kind) => [
      `${GROUP}_${kind.plural}.yaml`,
      stringify(definition(kind), { lineWidth: 0, aliasDuplicateObjects: false }),
    ]),
  );
}

function definition({ kind, plural, shortName, scope, description, spec }: Kind): object {
  const names = {
    kind,
    listKind: `${kind}List`,
    plural,
    singular: kind.toLowerCase(),
    shortNames: [shortName],
  };
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${GROUP}` },
    spec: {
      group: GROUP,
      names: { ...names, categories: [GROUP.replace('.dev', '')] },
      scope,
      versions: [
        {
          name: 'v1alpha1',
          served: true,
          storage: true,
          subresources: { status: {} },
          additionalPrinterColumns: COLUMNS,
          schema: { openAPIV3Schema: objectSchema(description, spec, scope) },
        },
      ],
    },
  };
}

const COLUMNS = [
  {
    name: 'Valid',
    type: 'string',
    description: 'Whether pods can use it.',
    jsonPath: '.status.conditions[?(@.type=="Valid")].status',
  },
  { name: 'Pods', type: 'integer', description: 'Pods that use it.', jsonPath: '.status.pods' },
  {
    name: 'Outdated',
    type: 'integer',
    description: 'Those of them that were made before its last change.',
    jsonPath: '.status.outdatedPods',
  },
  {
    name: 'Message',
    type: 'string',
    description: 'What is wrong with it.',
    jsonPath: '.status.conditions[?(@.type=="Valid")].message',
    priority: 1,
  },
  { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
];

function objectSchema(description: string, spec: GenericSchema, scope: Kind['scope']): StructuralSchema {
  const schema = toJsonSchema(spec, { typeMode: 'input', errorMode: 'ignore' }) as JsonSchema;
  return {
    description,
    type: 'object',
    required: ['spec'],
    properties: {
      apiVersion: { description: 'token-sidecar.dev/v1alpha1', type: 'string' },
      kind: { description: 'The kind of the object.', type: 'string' },
      metadata: { type: 'object' },
      spec: structuralSchema(schema, {
        descriptions: SPEC_DESCRIPTIONS,
        rules: {
          '': [...SPEC_RULES, ...(scope === 'Cluster' ? SERVICE_ACCOUNTS_RULES : [])],
          'credentials[]': [...CREDENTIAL_RULES, ...(scope === 'Cluster' ? BROKER_RULES : NO_BROKER_RULES)],
          'credentials[].output': OUTPUT_RULES,
          'credentials[].egressProxy': EGRESS_PROXY_RULES,
          'routes[].egressProxy': EGRESS_PROXY_RULES,
          'hosts[].egressProxy': EGRESS_PROXY_RULES,
          'credentials[].tls.ca': AUTHORITIES_RULES,
          'routes[].tls.ca': AUTHORITIES_RULES,
          'hosts[].tls.ca': AUTHORITIES_RULES,
          'namespaces.selector.matchExpressions[]': EXPRESSION_RULES,
        },
      }),
      status: STATUS,
    },
    'x-kubernetes-validations': OBJECT_RULES,
  };
}

/** Conditions as meta/v1 has them. */
const STATUS: StructuralSchema & object = {
  description:
    'What the injector found. It is written by one replica, every few seconds where something has changed.',
  type: 'object',
  properties: {
    observedGeneration: { description: 'The generation of the profile that was judged.', type: 'integer' },
    pods: { description: 'How many pods use the profile.', type: 'integer' },
    outdatedPods: {
      description:
        'How many of them were made by an earlier generation of it: they keep that until they are made again.',
      type: 'integer',
    },
    conditions: {
      description: 'Valid: whether pods can use the profile.',
      type: 'array',
      // One is ours, and replaces those of others with the next report.
      maxItems: 8,
      ...{ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['type'] },
      items: {
        type: 'object',
        required: ['type', 'status', 'lastTransitionTime', 'reason', 'message'],
        properties: {
          type: { description: 'Valid.', type: 'string', maxLength: 316 },
          status: {
            description: 'True, False or Unknown.',
            type: 'string',
            enum: ['True', 'False', 'Unknown'],
          },
          observedGeneration: { description: 'The generation that this is about.', type: 'integer' },
          lastTransitionTime: {
            description: 'When the status changed last.',
            type: 'string',
            ...{ format: 'date-time' },
          },
          reason: { description: 'Valid or Invalid.', type: 'string', maxLength: 1024 },
          message: { description: 'The first 20 problems.', type: 'string', maxLength: 32_768 },
        },
      },
    },
  },
};

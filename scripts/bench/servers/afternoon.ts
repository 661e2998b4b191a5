// What one would write in an afternoon: Express and ioredis as their introductions show them, with its own keys.
import express from 'express';
import { Redis } from 'ioredis';
import type { ObjectReference } from '../../../src/domain/profile.ts';
import { listenForBench } from './http.ts';

const redis = new Redis(process.env['REDIS_URL'] ?? '');
const app = express();
app.use(express.json());

app.use(async (req, res, next) => {
  const key = await redis.hgetall(`apikey:${req.header('x-api-key')}`);
  if (key['user'] === undefined || key['organization'] !== req.header('x-platform-organization-id')) {
    res.status(401).json({ error: 'invalid API key' });
    return;
  }
  res.locals['profile'] = `profile:${key['organization']}:${key['user']}`;
  res.locals['objects'] = `objects:${key['organization']}`;
  next();
});

app.get('/api/profile/', async (_req, res) => {
  const profile = await redis.hgetall(res.locals['profile'] as string);
  if (Object.keys(profile).length === 0) {
    res.status(404).json({ error: 'no profile yet' });
    return;
  }
  res.json({
    username: profile['username'],
    profilePictureUrl: profile['pictureUrl'],
    avatar: profile['avatar'] && {
      url: profile['avatarUrl'],
      ...(JSON.parse(profile['avatar']) as ObjectReference),
    },
    evmLinkedWalletAddress: profile['wallet'],
  });
});

app.put('/api/profile/', async (req, res) => {
  const { avatarObjectDefinitionId: avatar } = req.body as { avatarObjectDefinitionId?: ObjectReference };
  if (typeof avatar?.datasourceId !== 'string' || typeof avatar.objectDefinitionId !== 'string') {
    res.status(400).json({ error: 'invalid body' });
    return;
  }
  const url = await redis.hget(
    res.locals['objects'] as string,
    `${avatar.datasourceId}:${avatar.objectDefinitionId}`,
  );
  if (url === null) {
    res.status(422).json({ error: 'no such object' });
    return;
  }
  const key = res.locals['profile'] as string;
  await redis.hset(key, { avatar: JSON.stringify(avatar), avatarUrl: url, updatedAt: Date.now() });
  const profile = await redis.hgetall(key);
  res.json({
    username: profile['username'],
    profilePictureUrl: profile['pictureUrl'],
    avatarObjectDefinitionId: avatar,
  });
});

listenForBench(app);

#!/usr/bin/env node
import '../dist/bloomctl.js';

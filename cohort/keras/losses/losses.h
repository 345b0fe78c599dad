// All losses.
#pragma once

#include "cohort/keras/losses/crossentropy.h"
#include "cohort/keras/losses/divergences.h"
#include "cohort/keras/losses/focal.h"
#include "cohort/keras/losses/functions.h"
#include "cohort/keras/losses/get.h"
#include "cohort/keras/losses/hinges.h"
#include "cohort/keras/losses/loss.h"
#include "cohort/keras/losses/regression.h"
